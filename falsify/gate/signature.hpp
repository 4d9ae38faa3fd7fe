// Signatures of evidence, made and verified by `ssh-keygen -Y`.
#pragma once

#include <filesystem>
#include <string>

namespace assay::falsify {

/// Returns the armored signature of a text by an SSH key. Throws InputError if the key cannot sign, Unavailable if
/// there is no ssh-keygen.
std::string sign(const std::string& text, const std::filesystem::path& key);

/// Returns the reason why `signature` is no signature of the text by a signer in `signers` (ssh-keygen(1), ALLOWED
/// SIGNERS); empty if it is. Throws InputError if `signers` cannot be read, Unavailable if there is no ssh-keygen.
std::string signature_flaw(const std::string& text, const std::string& signature, const std::filesystem::path& signers);

}  // namespace assay::falsify
