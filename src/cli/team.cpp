#include "cli/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <system_error>

#include "cli/commands.hpp"
#include "core/errors.hpp"

namespace assay::cli {

Failure failure_of_current_exception() {
  try {
    throw;
  } catch (const WrongStep& e) {
    return {kFalsified, e.sentence};
  } catch (const InputError& e) {
    return {kWrongUse, e.what()};
  } catch (const Unavailable& e) {
    return {kUnavailable, e.what()};
  } catch (const std::bad_alloc&) {
    return {kUnavailable, "memory: there is not enough for this; run fewer jobs at once (--jobs), or smaller cases"};
  } catch (const std::system_error& e) {  // from files and standard output
    return {kWrongUse, std::string(e.what()) + "; make room, or name a place that can be read and written"};
  }
}

std::vector<std::string> Team::exchange(const std::string& mine) { return received("+" + mine); }

// "+TEXT", or "CODE SENTENCE" of a rank that has failed.
std::vector<std::string> Team::received(const std::string& sent) {
  std::vector<std::string> all = ranks_->exchange(sent);
  const auto failed = [](const std::string& text) { return text[0] != '+'; };
  const auto first = std::ranges::find_if(all, failed);
  if (first != all.end()) {
    const std::string sentence = first->substr(first->find(' ') + 1);
    const bool every = std::ranges::count(all, *first) == std::ssize(all);
    throw RanksFailed{
        {std::atoi(first->c_str()), every ? sentence : fmt::format("rank {}: {}", first - all.begin(), sentence)}};
  }
  for (std::string& text : all) text.erase(0, 1);
  return all;
}

void Team::expect_same(const std::string& mine, const std::string& problem, const std::string& remedy) {
  const std::vector<std::string> all = exchange(mine);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) throw InputError(fmt::format("rank {}", r), problem, remedy);
}

void Team::together(const std::function<void()>& part) {
  if (size() == 1) return part();
  std::string sent = "+";
  try {
    part();
  } catch (const RanksFailed&) {
    throw;  // which all ranks know
  } catch (const program::RankLost&) {
    throw;
  } catch (...) {
    const Failure failure = failure_of_current_exception();
    sent = fmt::format("{} {}", failure.code, failure.sentence);
  }
  received(sent);
}

}  // namespace assay::cli
