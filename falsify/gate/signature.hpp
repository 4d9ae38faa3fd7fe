// Signatures of evidence, made and verified by `ssh-keygen -Y`.
#pragma once

#include <filesystem>
#include <string>

namespace assay::falsify {

/// The armored signature of a text by an SSH key. Throws InputError where the key cannot sign, Unavailable where there
/// is no ssh-keygen.
std::string sign(const std::string& text, const std::filesystem::path& key);

/// Why `signature` is not that of the text by somebody whom `signers` allows (ssh-keygen(1), ALLOWED SIGNERS). Empty:
/// it is. Throws InputError where `signers` cannot be read, Unavailable where there is no ssh-keygen.
std::string signature_flaw(const std::string& text, const std::string& signature, const std::filesystem::path& signers);

}  // namespace assay::falsify
