// Completeness of what the gate hashes: a build must read nothing for a verdict that no fingerprint covers.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "falsify/gate/environment.hpp"
#include "falsify/gate/fingerprint.hpp"

namespace assay::falsify {

/// An object file of the program, in a library that decides verdicts.
struct BuiltObject {
  std::string path;  ///< from the build folder
  std::string library;
  std::string options;  ///< of its compilation, without warnings and with <source> and <build> for the two folders
  /// Files that its compilation read: from the top of the checkout, or "<build>/...". Shaders count as read; files of
  /// the build that do nothing but include others do not.
  std::vector<std::string> files;
  bool current = true;  ///< false if Ninja does not know what its compilation read
};

/// A build of the program by Ninja.
struct Build {
  std::vector<BuiltObject> objects;
  std::string link;     ///< options of the link, and names of the system's libraries
  std::string symbols;  ///< `nm -A -g` of all objects of the program
};

/// Reads a build folder. Throws InputError if it is no build of the checkout `root` by Ninja, Unavailable without ninja
/// or nm.
Build read_build(const std::filesystem::path& folder, const std::filesystem::path& root);

/// Returns the options of each library, of each object that differs from its library, and of the link, as entries of
/// the environment.
Environment options_of(const Build& build);

/// Returns the files that the fingerprints of any kernel cover, and the bystanders.
std::set<std::string> hashed_files(const std::vector<Subject>& all, const Tree& tree);

/// Returns a sentence for each input of a verdict that no fingerprint covers (hashed_files): files that a compilation
/// reads, symbols from libraries that decide no verdict, symbols that replace those of shared libraries, and files or
/// variables that kernels and references read when they run; and for kernels of `all` that the build lacks.
std::vector<std::string> unseen_inputs(const Build& build, const std::vector<Subject>& all,
                                       const std::set<std::string>& hashed);

/// Describes how the arithmetic of this process differs from IEEE 754's default, as constructors of linked objects can
/// change it; empty if it does not.
std::string changed_arithmetic();

}  // namespace assay::falsify
