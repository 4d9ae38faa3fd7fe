#include "falsify/gate/includes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "falsify/gate/bystanders.hpp"
#include "system/sha256.hpp"

namespace assay::falsify {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

/// Search path of the build for quoted includes, after the folder of the file itself; the last folder replaces CUDA's
/// own headers on cuda-host.
constexpr std::string_view kRoots[] = {"src/", "", "src/plugin/", "src/runtime/cuda_host/shim/"};

bool has_suffix(std::string_view path, const auto& suffixes) {
  for (const std::string_view suffix : suffixes)
    if (path.ends_with(suffix)) return true;
  return false;
}

constexpr std::array kSources = {".cpp"sv, ".cu"sv};
constexpr std::array kHeaders = {".hpp"sv, ".h"sv, ".cuh"sv};

bool is_source(std::string_view path) { return has_suffix(path, kSources); }
bool is_header(std::string_view path) { return has_suffix(path, kHeaders); }

enum class Language { code, cmake, yaml, json, python, other };
Language language(std::string_view path) {
  if (has_suffix(path, std::array{".cmake"sv, ".cmake.in"sv, "CMakeLists.txt"sv})) return Language::cmake;
  if (path.ends_with(".yaml")) return Language::yaml;
  if (path.ends_with(".json")) return Language::json;
  if (path.ends_with(".py")) return Language::python;
  return has_suffix(path, std::array{".md"sv, ".txt"sv, ".html"sv, ".css"sv, ".js"sv, ".in"sv, ".jsonl"sv, ".lock"sv})
             ? Language::other
             : Language::code;
}

std::string stem_of(std::string_view path) { return std::string(path.substr(0, path.rfind('.'))); }

constexpr char kMark = '@';

/// Appends a token to a text unambiguously: no other tokens give the same text.
void append(std::string& text, const Token& token) {
  text += static_cast<char>('0' + static_cast<int>(token.kind));
  text.append(std::to_string(token.text.size())).append(1, ':').append(token.text);
}

/// True for words that read other files, or that expand to a line, a path or a date. The execution model of cuda-host
/// may use them: its messages name the place of a call.
bool is_refused(const Token& token, std::string_view path) {
  constexpr std::array kWords = {"incbin"sv,           "pch_preprocess"sv, "include_alias"sv,  "__LINE__"sv,
                                 "__FILE__"sv,         "__FILE_NAME__"sv,  "__BASE_FILE__"sv,  "__DATE__"sv,
                                 "__TIME__"sv,         "__TIMESTAMP__"sv,  "__builtin_LINE"sv, "__builtin_FILE"sv,
                                 "__INCLUDE_LEVEL__"sv};
  return token.kind == Token::Kind::plain && (std::ranges::find(kWords, token.text) != kWords.end() ||
                                              (token.text == "source_location" && !path.starts_with("src/")));
}

/// True if the word is an operand of #ifdef or defined().
bool is_defined_test(const std::vector<Token>& tokens, std::size_t i) {
  const auto before = [&](std::size_t back) { return i >= back ? std::string_view(tokens[i - back].text) : ""; };
  return before(1) == "ifdef" || before(1) == "ifndef" || before(1) == "defined" ||
         (before(1) == "(" && before(2) == "defined");
}

/// True if `import` at the beginning of a line is a directive: [cpp.import].
bool imports(const std::vector<Token>& tokens, std::size_t i) {
  if (i + 1 >= tokens.size()) return false;
  const Token& next = tokens[i + 1];
  const char c = next.text.front();
  return next.kind == Token::Kind::string || c == '<' || next.text == ":" || c == '_' ||
         std::isalpha(static_cast<unsigned char>(c)) != 0;
}

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash + 1));
}

}  // namespace

Includes::Includes(const Tree& tree) : tree_(tree) {
  for (const std::string& path : tree.below("kernels/vulkan/")) {
    if (!path.ends_with(".comp") || tree.find(path)->find("pragma") == std::string::npos) continue;
    // #pragma shaders NAME [DEFINE[=VALUE]...]; ...  (shaders.cmake)
    const std::vector<Token> tokens = code_tokens(*tree.find(path));
    bool pragma = false;
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
      if (tokens[i].kind == Token::Kind::directive)
        pragma = tokens[i + 1].text == "pragma" && tokens[i + 2].text == "shaders";
      const bool begins = tokens[i + 1].text == ";" || tokens[i + 1].text == "shaders";
      if (pragma && begins) shaders_.emplace(tokens[i + 2].text, path);
    }
  }
  std::vector<std::string> sources = tree.below("kernels/");
  for (const std::string_view folder : {"falsify/properties/", "src/contract/certificates/"})
    for (std::string& path : tree.below(folder)) sources.push_back(std::move(path));
  for (const std::string& path : sources) {
    if (!is_source(path) || tree.find(path)->find("KernelRegistration") != std::string::npos) continue;
    const std::string folder = folder_of(path), stem = stem_of(path);
    const std::string_view name = std::string_view(stem).substr(folder.size());
    if (folder == "falsify/properties/" && tree.find(fmt::format("contracts/{}.yaml", name)) != nullptr) continue;
    const bool has_header = std::ranges::any_of(
        kHeaders, [&](auto suffix) { return tree.find(fmt::format("{}{}", stem, suffix)) != nullptr; });
    const Parsed& own = parsed(path);
    if (folder.starts_with("kernels/"))
      for (const std::string& header : own.edges.included)
        if (is_header(header) && folder_of(header) == folder && header.find("-inl.") == std::string::npos)
          definers_[header].insert(path);
    if (!has_header && !own.names.empty() && own.names.front().included && is_header(own.names.front().file))
      definers_[own.names.front().file].insert(path);
  }
  for (auto& [path, own] : parsed_) add_definers(path, own.edges);
}

const Includes::Parsed& Includes::parsed(const std::string& path) {
  const auto known = parsed_.find(path);
  if (known != parsed_.end()) return known->second;
  const std::string* text = tree_.find(path);
  Parsed& own = parsed_[path];
  if (text == nullptr) return own;
  own = parse(path, *text);
  add_definers(path, own.edges);
  return own;
}

void Includes::add_definers(const std::string& path, Edges& edges) const {
  if (!is_header(path)) return;
  for (const std::string_view suffix : kSources)
    if (const std::string source = fmt::format("{}{}", stem_of(path), suffix); tree_.find(source) != nullptr)
      edges.files.insert(source);
  if (const auto at = definers_.find(path); at != definers_.end())
    edges.files.insert(at->second.begin(), at->second.end());
}

const std::string& Includes::own_digest(const std::string& path) {
  std::string& digest = own_digests_[path];
  if (digest.empty() && tree_.find(path) != nullptr) digest = sha256(parsed(path).text);
  return digest;
}

const std::string& Includes::digest(const std::string& path) {
  const auto known = digests_.find(path);
  if (known != digests_.end()) return known->second;
  std::vector<std::string> open;
  bool cyclic = false;
  return digests_[path] = digest_within(path, open, cyclic);
}

std::string Includes::digest_within(const std::string& path, std::vector<std::string>& open, bool& cyclic) {
  if (const auto known = acyclic_.find(path); known != acyclic_.end()) return known->second;
  if (tree_.find(path) == nullptr) return "";
  const Parsed& own = parsed(path);
  std::string text = own.text;
  bool above = false;  // the digest depends on the files that lead here
  open.push_back(path);
  for (const Parsed::Name& name : own.names) {
    if (!name.included) {
      text += own_digest(name.file);
    } else if (name.file == path) {
      text += "itself";
    } else if (std::ranges::find(open, name.file) != open.end()) {
      text += own_digest(name.file);
      above = true;
    } else {
      text += digest_within(name.file, open, above);
    }
    text += '\n';
  }
  open.pop_back();
  std::string digest = sha256(text);
  if (above) cyclic = true;
  else acyclic_[path] = digest;
  return digest;
}

Includes::Parsed Includes::parse(const std::string& path, const std::string& text) const {
  Parsed own;
  switch (language(path)) {
    case Language::code: parse_code(path, text, own); break;
    case Language::cmake: parse_cmake(path, text, own); break;
    case Language::yaml: own.text = yaml_text(text); break;
    case Language::json: own.text = json_text(text); break;
    case Language::python: own.text = python_text(text); break;
    case Language::other: own.text = text;
  }
  return own;
}

void Includes::parse_cmake(const std::string& path, const std::string& text, Parsed& own) const {
  for (const Token& token : cmake_tokens(text)) {
    const std::string file = fs::path(folder_of(path) + token.text).lexically_normal().generic_string();
    if (token.kind != Token::Kind::plain || tree_.find(file) == nullptr || language(file) != Language::code) {
      append(own.text, token);
      continue;
    }
    own.text += kMark;
    if (!is_bystander(file)) own.names.push_back({file, false});
  }
}

void Includes::parse_code(const std::string& path, const std::string& text, Parsed& own) const {
  using Kind = Token::Kind;
  const std::vector<Token> tokens = code_tokens(text);
  const auto is = [&](std::size_t i, std::string_view word) {
    return i < tokens.size() && tokens[i].kind == Kind::plain && tokens[i].text == word;
  };
  const auto unknown = [&](std::size_t i, std::string_view what) {
    own.edges.unknown.push_back(fmt::format("{}:{}: {}", path, i < tokens.size() ? tokens[i].line : 1, what));
  };
  const auto name = [&](const std::string& file, bool included) {
    own.text += kMark;
    own.names.push_back({file, included});
    own.edges.files.insert(file);
    if (included) own.edges.included.insert(file);
  };
  if (const std::string why = token_ambiguity(text); !why.empty()) unknown(tokens.size(), why);
  std::size_t strings_end = 0;  // string literals before this index are done
  bool defines = false;         // within a #define directive
  std::set<std::string> parameters;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.kind == Kind::directive) {
      const std::string_view what = i + 1 < tokens.size() ? std::string_view(tokens[i + 1].text) : "";
      const bool header = i + 2 < tokens.size() && tokens[i + 2].kind == Kind::header;
      defines = what == "define";
      parameters.clear();
      if (defines && i + 2 < tokens.size() && tokens[i + 2].text.ends_with('('))
        for (std::size_t p = i + 3; p < tokens.size() && tokens[p].text != ")"; ++p) parameters.insert(tokens[p].text);
      if (what == "import" || what == "embed" || what == "include_next" ||
          (what == "include" && (!header || token.text != "#"))) {
        std::string shown = token.text;
        for (std::size_t p = i + 1; p < tokens.size() && tokens[p].kind != Kind::end; ++p)
          shown += fmt::format("{}{}", p > i + 1 ? " " : "", tokens[p].text);
        unknown(i, shown);
      } else if (what == "include") {
        // Tokens after the name do not belong to it.
        append(own.text, token);
        append(own.text, tokens[i + 1]);
        const std::string& operand = tokens[i + 2].text;
        const Found found =
            follow(path, std::string_view(operand).substr(1, operand.size() - 2), operand[0] == '"', own.edges);
        if (!found.file.empty()) name(found.file, true);
        else append(own.text, tokens[i + 2]);
        if (found.unknown) unknown(i, fmt::format("#include {}", operand));
        i += 2;
        continue;
      }
    } else if (token.kind == Kind::end) {
      defines = false;
    } else if (token.kind == Kind::header) {  // __has_include: its value depends on the file's existence
      const Found found =
          follow(path, std::string_view(token.text).substr(1, token.text.size() - 2), token.text[0] == '"', own.edges);
      if (!found.file.empty()) {
        name(found.file, true);
        continue;
      }
      if (found.outside) unknown(i, fmt::format("__has_include({})", token.text));
    } else if (token.kind == Kind::string) {
      if (i >= strings_end) {
        strings_end = i;
        const std::string value = joined_value(tokens, strings_end);
        for (const std::string_view word : {"incbin", ".include", "pch_preprocess"})
          if (value.find(word) != std::string::npos)
            unknown(i, fmt::format("the text \"{}\", by which a file can be read", word));
      }
      std::size_t end = 0;
      const std::string value = joined_value({token}, end);
      if (value.find('/') != std::string::npos && tree_.find(value) != nullptr) {
        name(value, false);
        continue;
      }
      // A file to be included elsewhere, as in Highway.
      if (defines && tokens[i - 1].text.find("INCLUDE") != std::string::npos) {
        const Found found = follow(path, value, true, own.edges);
        if (found.unknown) unknown(i, fmt::format("#define {} {}", tokens[i - 1].text, token.text));
        if (!found.file.empty()) {
          name(found.file, false);
          continue;
        }
      }
    } else if (is_refused(token, path)) {
      unknown(i, token.text);
    } else if ((is(i, "__has_include") || is(i, "__has_include_next") || is(i, "__has_embed")) &&
               !is_defined_test(tokens, i)) {
      if (!is(i, "__has_include") || !is(i + 1, "(") || i + 2 >= tokens.size() || tokens[i + 2].kind != Kind::header)
        unknown(i, token.text);
    } else if (is(i, "import") && (token.first || (i > 0 && is(i - 1, "export"))) && imports(tokens, i)) {
      unknown(i, "import of a module");
    } else if (is(i, "asm") || is(i, "__asm__") || is(i, "__asm")) {
      std::size_t p = i + 1;
      while (is(p, "volatile") || is(p, "__volatile__") || is(p, "inline") || is(p, "goto")) ++p;
      bool literal = is(p, "(");
      for (++p; literal && p < tokens.size() && !is(p, ")") && !is(p, ":") && !is(p, "::"); ++p)
        literal = tokens[p].kind == Kind::string || (defines && parameters.contains(tokens[p].text));
      if (!literal) unknown(i, "assembly that is no literal");
    }
    append(own.text, token);
  }
}

Includes::Found Includes::follow(const std::string& from, std::string_view target, bool quoted, Edges& edges) const {
  std::vector<std::string> candidates;
  if (quoted) candidates.push_back(folder_of(from));
  candidates.insert(candidates.end(), std::begin(kRoots), std::end(kRoots));
  bool outside = false;
  for (const std::string& folder : candidates) {
    std::string path = fs::path(folder + std::string(target)).lexically_normal().generic_string();
    if (tree_.find(path) == nullptr) {
      for (const std::string_view unhashed : {"../", "tests/", "ci/", "build/"}) outside |= path.starts_with(unhashed);
      continue;
    }
    return {.file = path, .unknown = language(path) != Language::code};
  }
  const std::string stem(target.substr(target.rfind('/') + 1, target.rfind('.') - target.rfind('/') - 1));
  const std::string op = target.starts_with("ops/") ? stem
                         : target.ends_with("_obligations.hpp")
                             ? stem.substr(0, stem.size() - std::string_view("_obligations").size())
                             : "";
  if (const std::string contract = fmt::format("contracts/{}.yaml", op);
      !op.empty() && tree_.find(contract) != nullptr) {
    edges.files.insert(contract);
    return {};
  }
  if (target.starts_with("shaders/") && shader(stem, edges)) return {};
  return {.file = {},
          .unknown = outside || ours(target) || (quoted && target.find('/') == std::string_view::npos),
          .outside = outside};
}

bool Includes::shader(std::string_view name, Edges& edges) const {
  const auto at = shaders_.find(name);
  if (at != shaders_.end()) edges.files.insert(at->second);
  return at != shaders_.end();
}

bool Includes::ours(std::string_view target) const {
  const std::size_t slash = target.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string folder(target.substr(0, slash + 1));
  return folder == "ops/" || folder == "shaders/" || tree_.has(folder) || tree_.has("src/" + folder);
}

}  // namespace assay::falsify
