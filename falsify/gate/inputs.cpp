#include "falsify/gate/inputs.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/gate/bystanders.hpp"
#include "system/program.hpp"

namespace assay::falsify {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBuild = "<build>/", kSource = "<source>/", kProgram = "bin/assay";

/// Libraries that decide no verdict of a kernel. All others do, including new ones.
bool decides(std::string_view library) {
  constexpr std::array<std::string_view, 15> kOthers = {"assay_cli",    "assay_serve",       "assay_import",
                                                        "assay_plugin", "assay_program",     "assay_falsify_program",
                                                        "assay_gate",   "assay_foreign",     "assay_study",
                                                        "assay_spirv",  "assay_adversaries", "assay_plugin_vulkan",
                                                        "assay_ptx",    "assay_policies",    "assay_spirv_mutants"};
  constexpr std::array<std::string_view, 3> kFamilies = {"assay_faults_", "assay_schemata_", "assay_automatic_"};
  return std::ranges::find(kOthers, library) == kOthers.end() &&
         std::ranges::none_of(kFamilies, [&](std::string_view family) { return library.starts_with(family); });
}

/// Libraries of kernels and references, which compute from their arguments alone.
bool computes(std::string_view library) {
  constexpr std::array<std::string_view, 6> kOthers = {"assay_ops",         "assay_oracles",  "assay_properties",
                                                       "assay_obligations", "assay_contract", "assay_bounds"};
  return library.starts_with("assay_kernels") || std::ranges::find(kOthers, library) != kOthers.end();
}

/// The library of "falsify/CMakeFiles/assay_engine.dir/Unity/unity_0_cxx.cxx.o".
std::string library_of(std::string_view object) {
  const std::size_t end = object.find(".dir/");
  if (end == std::string_view::npos) return "";
  const std::size_t begin = object.rfind('/', end) + 1;
  return std::string(object.substr(begin, end - begin));
}

std::string tool(const fs::path& folder, std::vector<std::string> command) {
  const std::string name = command.front();
  if (name == "ninja") command.insert(command.begin() + 1, {"-C", folder.string()});
  const Finished done = run_program(command, {}, fmt::format("install {0} (Debian: ci/setup)", name));
  if (done.code != 0)
    throw InputError(fmt::format("--build {}", folder.string()), fmt::format("{}: {}", name, done.complaint()),
                     "build it first: cmake --build --preset release");
  return done.out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

/// Names files relative to the checkout and the build folder.
class Places {
 public:
  Places(const fs::path& folder, const fs::path& root) : folder_(fs::canonical(folder)), root_(fs::canonical(root)) {}

  const fs::path& folder() const { return folder_; }
  const fs::path& root() const { return root_; }

  /// Returns the place of a file, behind symbolic links; empty outside both folders.
  const std::string& of(const std::string& file) {
    const auto [at, fresh] = known_.try_emplace(file);
    if (!fresh) return at->second;
    std::error_code error;
    const fs::path path = fs::weakly_canonical(folder_ / file, error);
    const auto below = [&](const fs::path& top) {
      const std::string own = path.lexically_relative(top).generic_string();
      return own.starts_with("..") ? "" : own;
    };
    if (const std::string own = below(folder_); !own.empty()) at->second = std::string(kBuild) + own;
    else at->second = below(root_);
    return at->second;
  }

  std::string without(std::string text) const {
    for (const auto& [path, name] : {std::pair(folder_.string(), kBuild), std::pair(root_.string(), kSource)})
      for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += name.size() - 1)
        text.replace(at, path.size(), name.substr(0, name.size() - 1));
    return text;
  }

 private:
  fs::path folder_, root_;
  std::map<std::string, std::string> known_;
};

/// Returns the options of a compilation or link.
std::string options_in(const std::string& command, const Places& places, bool links) {
  std::string options;
  const std::vector<std::string> words = words_of(places.without(command));
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (word == "-o" || word == "-c" || word == "-x" || word == "-MF" || word == "-MT") {
      ++i;
      continue;
    }
    const bool warning = word.starts_with("-W") && word.find(',') != 3;  // unlike -Wl,
    const bool operand = links ? !word.starts_with(kSource) : i == 0;    // objects of the build, the compiler
    const std::size_t library = word.find(".so");
    if (links && word.starts_with('/') && library != std::string::npos)  // of the system: its version is an entry
      word = word.substr(word.rfind('/') + 1, library + 3 - word.rfind('/') - 1);
    else if (warning || (operand && !word.starts_with('-'))) continue;
    options += options.empty() ? word : " " + word;
  }
  return options;
}

/// True for a file of the build that does nothing but include others, as for units of several sources.
bool only_includes(const std::string& text) {
  std::string_view directive;
  const std::vector<Token> tokens = code_tokens(text);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == Token::Kind::directive && i + 2 < tokens.size())
      directive = tokens[i + 1].text == "define" ? tokens[i + 2].text : tokens[i + 1].text;
    if (directive != "include" && directive != "HWY_TARGET_INCLUDE") return false;
    if (tokens[i].kind == Token::Kind::end) directive = {};
    else if (tokens[i].kind == Token::Kind::plain && tokens[i].text != directive && tokens[i].text != "define")
      return false;
  }
  return true;
}

/// Fills the files that compilations read.
void add_files(std::vector<BuiltObject>& objects, Places& places) {
  std::vector<std::string> command = {"ninja", "-t", "deps"};
  std::map<std::string, BuiltObject*> by_path;
  for (BuiltObject& object : objects) {
    object.current = false;
    by_path[object.path] = &object;
    command.push_back(object.path);
  }
  std::map<std::string, bool> includes_only;
  BuiltObject* object = nullptr;
  const auto add = [&](const std::string& file) {
    const std::string& place = places.of(file);
    if (place.empty()) return;
    if (place.starts_with(kBuild)) {
      const auto [at, fresh] = includes_only.try_emplace(place);
      if (fresh)
        at->second = only_includes(files::read(places.folder() / place.substr(kBuild.size()), "build it again"));
      if (at->second) return;
    }
    object->files.push_back(place);
  };
  for (const std::string& line : lines_of(tool(places.folder(), command))) {
    if (!line.starts_with("    ")) {
      const auto at = by_path.find(line.substr(0, line.find(": ")));
      object = at == by_path.end() ? nullptr : at->second;
      if (object != nullptr) object->current = line.ends_with("(VALID)");
    } else if (object != nullptr) {
      const std::string file = line.substr(4);
      add(file);
      if (!file.ends_with(".inc") || !places.of(file).starts_with("<build>/generated/shaders/")) continue;
      // The shader's compiler wrote which files it read.
      const fs::path record = places.folder() / (file.substr(0, file.size() - 4) + ".spv.d");
      for (const std::string& word : words_of(files::read(record, "build it again")))
        if (!word.ends_with(':') && word != "\\" && word.find(".spv") == std::string::npos) add(word);
    }
  }
}

/// True for a file that contractgen, kernels/vulkan/shaders.cmake or embed.cmake makes of hashed files. Includes (class)
/// refuses names of operations and shaders that do not exist.
bool generated(std::string_view place, const std::set<std::string>& hashed) {
  place.remove_prefix(kBuild.size());
  if (place.starts_with("generated/shaders/") || place == "falsify/embedded.cpp") return true;
  if (!place.starts_with("generated/")) return false;
  place.remove_prefix(std::string_view("generated/").size());
  for (const std::string_view table :
       {"ops/index.cpp", "ops/calls.cpp", "oracles.cpp", "obligations.cpp", "numerics.cpp"})
    if (place == table) return true;
  std::string op(place.substr(0, place.rfind('.')));
  if (op.starts_with("ops/")) op.erase(0, 4);
  else if (const std::size_t last = op.rfind('_'); op.ends_with("_oracle") || op.ends_with("_obligations"))
    op.erase(last);
  else return false;
  return hashed.contains(fmt::format("contracts/{}.yaml", op));
}

/// Returns the way to have an unhashed file hashed.
std::string_view remedy_for(std::string_view file) {
  if (file.starts_with(kBuild)) return "commit it as a source, or have contractgen or shaders.cmake make it";
  if (file.starts_with("kernels/") || file.starts_with("reference/") || file.starts_with("falsify/properties/"))
    return "include it, or a header of its name, by its path from the sources of a kernel, or take it out of the build";
  return "move it to the kernels, the reference or the engine, and include it from there";
}

/// Where a symbol of the program is defined and used.
struct Uses {
  std::set<std::string> defined, strong, wanted;  ///< objects
};

std::map<std::string, Uses> uses_of(const std::string& symbols) {
  std::map<std::string, Uses> all;
  for (const std::string& line : lines_of(symbols)) {  // "OBJECT: [ADDRESS] KIND SYMBOL"
    const std::size_t colon = line.find(".o:");
    if (colon == std::string::npos) continue;
    const std::vector<std::string> words = words_of(line.substr(colon + 3));
    if (words.size() < 2) continue;
    const std::string object = line.substr(0, colon + 2);
    const char kind = words[words.size() - 2].front();
    Uses& uses = all[words.back()];
    if (words.size() == 2 && (kind == 'U' || kind == 'w' || kind == 'v')) {
      uses.wanted.insert(object);
      continue;
    }
    uses.defined.insert(object);
    if (std::string_view("WVu").find(kind) == std::string_view::npos) uses.strong.insert(object);
  }
  return all;
}

/// True for a function by which a kernel would depend on more than its arguments.
bool reads_files(std::string_view symbol) {
  constexpr std::array<std::string_view, 15> kReaders = {"open",    "open64", "openat",  "openat64", "fopen",
                                                         "fopen64", "fdopen", "freopen", "popen",    "system",
                                                         "getenv",  "dlopen", "read",    "pread",    "secure_getenv"};
  const auto has = [symbol](std::string_view part) { return symbol.find(part) != std::string_view::npos; };
  return std::ranges::find(kReaders, symbol) != kReaders.end() || has("basic_filebuf") || has("basic_ifstream") ||
         has("basic_fstream") || symbol.starts_with("_ZNSt10filesystem");
}

void add_unseen_symbols(const Build& build, std::vector<std::string>& said) {
  const auto decides_verdicts = [](const std::string& object) { return decides(library_of(object)); };
  for (const auto& [symbol, uses] : uses_of(build.symbols)) {
    // Definitions from templates and inline functions of the libraries' own headers are weak, and have C++ names.
    const std::set<std::string>& own = symbol.starts_with("_Z") ? uses.strong : uses.defined;
    if (!own.empty() && dlsym(RTLD_NEXT, symbol.c_str()) != nullptr)
      said.push_back(fmt::format("{} defines {} for the whole program, in place of a shared library: rename it",
                                 *own.begin(), symbol));
    const auto user = std::ranges::find_if(uses.wanted, decides_verdicts);
    if (user != uses.wanted.end() && !uses.defined.empty() && std::ranges::none_of(uses.defined, decides_verdicts))
      said.push_back(fmt::format(
          "{} takes {} from {}, which no hash covers: define it in a file that the kernel's sources include, or beside a header that they include",
          *user, symbol, *uses.defined.begin()));
    const auto reader =
        std::ranges::find_if(uses.wanted, [](const std::string& object) { return computes(library_of(object)); });
    if (reader != uses.wanted.end() && uses.defined.empty() && reads_files(symbol))
      said.push_back(fmt::format(
          "{} calls {}: no hash covers what it reads when it runs; pass it as an argument, or compile it in", *reader,
          symbol));
  }
}

}  // namespace

Build read_build(const fs::path& folder, const fs::path& root) {
  const std::string option = fmt::format("--build {}", folder.string()),
                    remedy = "name the folder of a build with Ninja: build/release";
  if (!fs::is_regular_file(folder / "build.ninja") || !fs::is_regular_file(folder / "compile_commands.json"))
    throw InputError(option, "holds no build.ninja and compile_commands.json", remedy);
  Places places(folder, root);
  const std::string cache = files::read(folder / "CMakeCache.txt", remedy), home = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  const std::size_t at = cache.find(home) + home.size();
  if (cache.find(home) == std::string::npos ||
      fs::weakly_canonical(cache.substr(at, cache.find('\n', at) - at)) != places.root())
    throw InputError(option, fmt::format("is no build of {}", root.string()), remedy);
  Build build;
  std::vector<std::string> nm = {"nm", "-A", "-g"};
  std::set<std::string> linked;
  for (std::string& input : lines_of(tool(folder, {"ninja", "-t", "inputs", std::string(kProgram)})))
    if (input.ends_with(".o")) {
      nm.push_back((places.folder() / input).string());
      linked.insert(std::move(input));
    }
  const std::string symbols = tool(folder, nm);
  build.symbols.reserve(symbols.size());
  for (const std::string& line : lines_of(symbols)) {
    const std::string prefix = places.folder().string() + "/";
    build.symbols.append(line.starts_with(prefix) ? line.substr(prefix.size()) : line).append(1, '\n');
  }
  build.link = options_in(tool(folder, {"ninja", "-t", "commands", "-s", std::string(kProgram)}), places, true);
  for (const nlohmann::json& entry :
       nlohmann::json::parse(files::read(folder / "compile_commands.json", remedy), nullptr, false)) {
    const std::string command = entry.at("command").get<std::string>();
    const std::vector<std::string> words = words_of(command);
    const auto output = std::ranges::find(words, "-o");
    if (output == words.end() || output + 1 == words.end() || !linked.contains(output[1])) continue;
    const std::string library = library_of(output[1]);
    if (decides(library)) build.objects.push_back({output[1], library, options_in(command, places, false), {}});
  }
  add_files(build.objects, places);
  return build;
}

Environment options_of(const Build& build) {
  std::map<std::string, std::map<std::string, std::vector<const BuiltObject*>>> libraries;  // objects by options
  for (const BuiltObject& object : build.objects) libraries[object.library][object.options].push_back(&object);
  Environment entries;
  for (const auto& [library, variants] : libraries) {
    const auto common =
        std::ranges::max_element(variants, {}, [](const auto& variant) { return variant.second.size(); });
    entries[fmt::format("{}{}", kOptionsOf, library)] = common->first;
    for (const auto& [options, objects] : variants)
      for (const BuiltObject* object : objects)
        if (options != common->first)
          entries[fmt::format("{}{}{}", kOptionsOf, library, object->path.substr(object->path.find(".dir/") + 4))] =
              options;
  }
  entries[fmt::format("{}the link", kOptionsOf)] = build.link;
  return entries;
}

std::set<std::string> hashed_files(const std::vector<Subject>& all, const Tree& tree) {
  Fingerprints fingerprints(tree);
  std::set<std::string> files(std::begin(kBystanders), std::end(kBystanders));
  for (const Subject& subject : all)
    for (const auto& [part, reached] : fingerprints.of(subject))
      for (const auto& [path, digest] : reached->digests) files.insert(path);
  return files;
}

std::vector<std::string> unseen_inputs(const Build& build, const std::vector<Subject>& all,
                                       const std::set<std::string>& hashed) {
  std::vector<std::string> said;
  std::set<std::string> read;
  std::map<std::string, const BuiltObject*> unseen;
  for (const BuiltObject& object : build.objects) {
    if (!object.current)
      said.push_back(fmt::format(
          "{} is missing or older than its sources: build it first: cmake --build --preset release", object.path));
    read.insert(object.files.begin(), object.files.end());
    for (const std::string& file : object.files)
      if (file.starts_with(kBuild) ? !generated(file, hashed) : !hashed.contains(file)) unseen.emplace(file, &object);
  }
  for (const auto& [file, object] : unseen)
    said.push_back(
        fmt::format("{} is read to build {}, but no hash covers it: {}", file, object->path, remedy_for(file)));
  for (const Subject& subject : all)
    if (traits(subject.backend).host && !read.contains(subject.source))
      said.push_back(fmt::format("{} is read by no object of the build: build it first: cmake --build --preset release",
                                 subject.source));
  add_unseen_symbols(build, said);
  return said;
}

std::string changed_arithmetic() {
  volatile float least = std::numeric_limits<float>::min(), half = 0.5F,
                 denormal = std::numeric_limits<float>::denorm_min();
  const volatile float flushed = least * half, zeroed = denormal * 8388608.0F;
  if (flushed == 0 || zeroed == 0)
    return "this program starts with subnormal numbers flushed to zero: take out what sets that before main() (-ffast-math in the link, or a constructor)";
  if (std::fegetround() != FE_TONEAREST)
    return "this program starts in another rounding mode: take out what sets it before main()";
  return "";
}

}  // namespace assay::falsify
