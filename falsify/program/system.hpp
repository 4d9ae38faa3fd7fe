// Systems: blocks of transformers that are judged like operations. A case of a system is a configuration, its lengths
// and a seed, as dims and params; an obligation is a check on such a case.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/engine/campaign.hpp"
#include "falsify/program/wiring.hpp"

namespace assay::falsify {

struct SystemObligation;
struct StepOfCase;

struct System {
  BlockPart part = BlockPart::layer;
  /// Name, summary, equations, dims, params and obligations; no tensors, and not among operations().
  OpDescriptor op;
  std::vector<const SystemObligation*> obligations;
  std::vector<ObligationInfo> infos;  ///< what op.obligations looks at
  std::vector<ShapeRegion> shapes;    ///< what op.shapes looks at: layers that are in use, by name
  std::vector<std::vector<Index>> extents;
};

/// Returns all of them, or none in a program that lacks the operations they are made of.
std::span<const System> systems();
/// Returns null if there is no system of this name.
const System* find_system(std::string_view name);

/// The program of a system on a back end, as reports name it: "attention_block/vulkan/program". With a kernel, which
/// then computes every step of its operation: "attention_block/vulkan/program+mutant/vulkan/attention/scale_missing".
class SystemKernel {
 public:
  SystemKernel(const System& system, Backend backend, const Kernel* of_steps = nullptr);
  /// Throws InputError for an id of another form, or of a kernel that does not exist.
  static SystemKernel from_id(const System& system, std::string_view id);

  const System& system() const { return *system_; }
  const Kernel& kernel() const { return *kernel_; }
  const Kernel* of_steps() const { return of_steps_; }

 private:
  const System* system_;
  const Kernel* of_steps_;
  std::shared_ptr<std::string> id_;
  std::shared_ptr<Kernel> kernel_;
};

/// Throws InputError, in one sentence, for a case that is no configuration of the system.
BlockCase block_of(const System& system, const Case& c);

/// A small case with everything at once: groups of heads, biases, norms of heads, an adapter on every projection.
Case everything(const System& system, bool tied_head = false);
/// The cases whose programs are mutated, by name: the one with everything at once, which has none; of decoding also
/// chunks and packed weights.
std::vector<std::pair<std::string_view, Case>> mutated_cases(const System& system);
/// Draws a case of at most `small` places a dim, whose whole bounds stay small, or of any size. Dims that are given
/// (not kDrawnSmall) stay.
Case draw(const System& system, bool small, std::uint64_t seed, std::span<const Index> given = {});

/// The cases of a gradient check: everything at once; everything else once, a bias on every projection, one key-value head
/// or as many as query heads, one position, and a width of all heads that is hidden's; and drawn ones.
Case gradient_case(const System& system, int number, std::uint64_t seed);

/// Draws a case of a layer that is in use, if it is the turn of one. It has few rows: as many as the back end affords, by
/// a cost that is a function of the dims and of no clock.
std::optional<Case> draw_practice(const System& system, Backend backend, int number, std::uint64_t seed);

/// One case on one back end.
class SystemTrial {
 public:
  /// A change of each program of the trial, to see an obligation fail.
  using Alter = std::function<void(program::Program&)>;
  /// Refuses configurations, as program::check() does.
  using Check = std::function<void(const program::TransformerConfig&)>;

  SystemTrial(const SystemKernel& kernel, const Case& c, Alter alter = {}, Check by = program::check)
      : check(std::move(by)), kernel_(kernel), block_(block_of(kernel.system(), c)), alter_(std::move(alter)) {}

  const Check check;

  const BlockCase& block() const { return block_; }
  Device& on() const { return device(kernel_.kernel().backend); }
  /// Chooses the kernel of each step.
  program::SessionOptions options() const;
  const Wiring& wiring() const;
  /// Of a training step: built once for all obligations.
  const StepOfCase& step() const;
  void alter(program::Program& program) const {
    if (alter_) alter_(program);
  }

  /// Counts of composed bounds, small ones and others.
  mutable std::int64_t bounds = 0;

 private:
  const SystemKernel& kernel_;
  BlockCase block_;
  Alter alter_;
  mutable std::unique_ptr<Wiring> wiring_;
  mutable std::shared_ptr<const StepOfCase> step_;
};

struct SystemObligation {
  ObligationInfo info;
  std::span<const BlockPart> parts;  ///< systems that have it
  bool any_size = false;             ///< cases need not be small
  Outcome (*check)(const SystemTrial& trial) = nullptr;
};
std::span<const SystemObligation> system_obligations();
/// Those of a training step.
std::span<const SystemObligation> step_obligations();

/// Called before each case, with its number in the campaign.
using SystemProgress = std::function<void(const SystemObligation&, const Case&, int number)>;

/// Tries every obligation of the system on options.cases cases. A counterexample is shrunk. The result is a kernel's of a
/// report. Uses all options but limit and largest. It ends once its obligations have compared `elements` elements, if
/// that is not 0.
nlohmann::json run_campaign(const SystemKernel& kernel, const CampaignOptions& options,
                            const SystemProgress& progress = {}, std::int64_t elements = 0);

/// The result of a campaign whose process ended, with this meaning, in a case.
nlohmann::json ended_in(const SystemKernel& kernel, std::string_view obligation, const Case& c, int number,
                        Finding::Kind kind, const std::string& meaning);

/// Runs one obligation on one case. Throws InputError if the system has no such obligation.
Outcome run_case(const SystemKernel& kernel, std::string_view obligation, const Case& c, SystemTrial::Alter alter = {},
                 SystemTrial::Check check = program::check);

}  // namespace assay::falsify
