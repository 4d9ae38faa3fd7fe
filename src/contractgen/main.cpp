// contractgen OUT_DIR ROOT CONTRACT...: reads the contracts and writes all generated files. A file is written only if
// its text changes, so that changing one contract rebuilds that operation alone. An invalid contract gives exit code 2
// and one sentence on standard error.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "contract/loader.hpp"
#include "contractgen/emit.hpp"
#include "core/errors.hpp"

namespace {

namespace fs = std::filesystem;
using namespace assay;
using namespace assay::contractgen;

void write(const fs::path& file, const std::string& text) {
  std::ostringstream old;
  if (std::ifstream in(file, std::ios::binary); in) old << in.rdbuf();
  if (fs::exists(file) && old.str() == text) return;
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush()) throw InputError(file.string(), "the file cannot be written", "check the output folder");
}

void write(const fs::path& folder, const Source& source) { write(folder / source.path(), source.text()); }

void generate(const fs::path& folder, const fs::path& root, const std::vector<std::string>& files) {
  std::vector<contract::model::Contract> contracts;
  for (const std::string& file : files) {
    const std::string label = fs::path(file).lexically_proximate(root).generic_string();
    if (fs::path(file).stem() == "numerics") write(folder, numerics(file, label));
    else contracts.push_back(contract::load(file, label));
  }
  contract::cross_check(contracts);
  std::ranges::sort(contracts, {}, [](const auto& c) { return c.op.value; });
  for (const auto& contract : contracts) {
    write(folder, ops_header(contract));
    write(folder, ops_source(contract));
    write(folder, negative_test(contract));
    const auto backward =
        std::ranges::find(contracts, contract.op.value + "_backward", [](const auto& c) { return c.op.value; });
    write(folder, oracle(contract, backward == contracts.end() ? nullptr : &*backward));
    write(folder, obligations_header(contract));
    write(folder, obligations_source(contract));
    write(folder / "docs" / (contract.op.value + ".md"), documentation(contract));
  }
  write(folder, ops_index(contracts));
  write(folder, ops_calls(contracts));
  write(folder, oracle_index(contracts));
  write(folder, obligations_index(contracts));
  write(folder, builder_functions(contracts));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 3) {
    std::cerr << "contractgen: too few arguments; call it as contractgen OUT_DIR ROOT CONTRACT...\n";
    return 2;
  }
  try {
    generate(arguments[0], arguments[1], {arguments.begin() + 2, arguments.end()});
    return 0;
  } catch (const InputError& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
