#include "falsify/gate/signature.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "system/program.hpp"
#include "system/scratch.hpp"

namespace assay::falsify {
namespace {

namespace fs = std::filesystem;

/// Namespace of the signatures: a signature made for another purpose is not valid for evidence.
constexpr const char* kNamespace = "assay-evidence";
constexpr const char* kRemedy = "install it (Debian: apt install openssh-client)";

Finished keygen(std::vector<std::string> command, const std::string& text) {
  command.insert(command.begin(), "ssh-keygen");
  return run_program(command, text, kRemedy);
}

}  // namespace

std::string sign(const std::string& text, const fs::path& key) {
  files::expect_regular(key, "name a private SSH key, or a public one of ssh-agent's, with --key");
  Finished done = keygen({"-Y", "sign", "-q", "-f", key.string(), "-n", kNamespace}, text);
  if (done.code != 0)
    throw InputError("--key " + key.string(), "cannot sign: " + done.complaint(),
                     "name a private SSH key, or a public one of ssh-agent's");
  return std::move(done.out);
}

std::string signature_flaw(const std::string& text, const std::string& signature, const fs::path& signers) {
  files::expect_regular(signers, "name a file of allowed signers (man ssh-keygen) with --signers");
  const Scratch file(signature);
  const Finished who = keygen({"-Y", "find-principals", "-s", file.path(), "-f", signers.string()}, "");
  const std::string principal = who.out.substr(0, who.out.find_first_of(",\n"));
  if (who.code != 0 || principal.empty()) return fmt::format("it is signed by nobody of {}", signers.string());
  const Finished verified = keygen(
      {"-Y", "verify", "-q", "-f", signers.string(), "-I", principal, "-n", kNamespace, "-s", file.path()}, text);
  return verified.code == 0 ? ""
                            : fmt::format("its signature by {} does not hold: {}", principal, verified.complaint());
}

}  // namespace assay::falsify
