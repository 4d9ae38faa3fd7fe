// Every automatic mutant of differentiated blocks dies in double, or is the program in fifty digits. Every named fault
// of a decoder dies.
#include "falsify/program/mutants.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/program/block_faults.hpp"
#include "falsify/program/system.hpp"
#include "falsify/program/wiring.hpp"

namespace assay::program::mutants_test {
namespace {

using falsify::ProgramMutant;
using falsify::Wiring;

bool dies(const Wiring& wiring, const std::vector<std::vector<double>>& got) {
  for (std::size_t row = 0; row < got.size(); ++row)
    if (falsify::judge(wiring.expected()[row], got[row]).finding) return true;
  return false;
}

class ProgramMutants : public testing::TestWithParam<std::string> {};

TEST_P(ProgramMutants, Die) {
  const Wiring wiring(block_case(GetParam()));
  EXPECT_FALSE(dies(wiring, wiring.run(wiring.right()))) << "the program itself";
  std::map<std::string_view, int> killed, equivalent;
  int all = 0;
  for (const ProgramMutant& m : wiring.mutants()) {
    ++all;
    if (dies(wiring, wiring.run(m))) ++killed[falsify::name(m.fault)];
    else if (wiring.equivalent(m)) ++equivalent[falsify::name(m.fault)];
    else ADD_FAILURE() << "survives: " << m.description;
  }
  for (const auto& [fault, n] : killed) fmt::print("{}: {} killed, {} equivalent\n", fault, n, equivalent[fault]);
  const bool integers = GetParam() != "feed_forward";  // lengths and positions
  EXPECT_EQ(killed.size(), integers ? 13u : 12u) << "a kind of fault that nothing dies of";
  EXPECT_GE(all, 100);
}

class SystemMutants : public testing::TestWithParam<std::string> {};

/// At least 99 of 100 that are not the program in fifty digits die.
TEST_P(SystemMutants, Die) {
  const falsify::System& system = *falsify::find_system(GetParam());
  std::set<std::string_view> kinds;
  int killed = 0, survived = 0, equivalent = 0;
  for (const auto& [of, c] : mutated_cases(system)) {
    const Wiring wiring(block_of(system, c));
    for (const ProgramMutant& m : wiring.mutants()) {
      if (dies(wiring, wiring.run(m))) ++killed, kinds.insert(falsify::name(m.fault));
      else if (wiring.equivalent(m)) ++equivalent;
      else ++survived, fmt::print("survives: {} {}\n", of, m.description);
    }
  }
  fmt::print("{} killed, {} survived, {} equivalent\n", killed, survived, equivalent);
  EXPECT_LE(100 * survived, killed + survived);
  EXPECT_GE(kinds.size(), 11u) << "a kind of fault that nothing dies of";
  EXPECT_GE(killed, 1000);
}

INSTANTIATE_TEST_SUITE_P(Of, SystemMutants, testing::Values("decode_step", "training_step"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Of, ProgramMutants,
                         testing::Values("feed_forward", "lora_on_all_attention", "lora_on_all", "tied_loss",
                                         "recomputed_loss", "multi_label_encoder"),
                         [](const auto& info) { return info.param; });

/// Returns whether the fault has an effect.
bool expect_death(const Wiring& wiring, const falsify::BlockFault& fault, bool everywhere = true) {
  const ProgramMutant m = falsify::plant(fault, wiring.differentiated().program);
  const auto got = wiring.run(m);
  const bool dead = dies(wiring, got);
  if (!dead && !everywhere && wiring.equivalent(m)) return false;
  EXPECT_TRUE(dead) << m.description << (wiring.equivalent(m) ? ": has no effect" : ": survives");
  for (const std::vector<double>& row : got)
    EXPECT_TRUE(std::ranges::all_of(row, [](double g) { return std::isfinite(g); }))
        << m.description << ": dies of memory that nothing has written, not of the fault";
  return dead;
}

TEST(BlockFaults, Die) {
  const Wiring wiring(block_case("tied_loss"));
  for (const falsify::BlockFault& fault : falsify::block_faults()) expect_death(wiring, fault);
  EXPECT_GE(falsify::block_faults().size(), 60u);
}

/// Of a case with one sequence they are the program.
TEST(BatchFaults, Die) {
  for (const char* system : {"attention_block", "decoder_layer", "model_loss"}) {
    const falsify::System& s = *falsify::find_system(system);
    const Wiring batch(block_of(s, falsify::everything(s)));
    for (const falsify::BlockFault& fault : falsify::batch_faults()) expect_death(batch, fault);
  }
}

TEST(RecomputationFaults, Die) {
  const Wiring wiring(block_case("recomputed_loss"));
  EXPECT_FALSE(dies(wiring, wiring.run(wiring.right())));
  for (const falsify::BlockFault& fault : falsify::recomputation_faults()) expect_death(wiring, fault);
}

TEST(DecodeFaults, Die) {
  const falsify::System& system = *falsify::find_system("decode_step");
  std::map<std::string_view, int> planted;
  for (const auto& [of, c] : mutated_cases(system)) {
    const Wiring wiring(block_of(system, c));
    EXPECT_FALSE(dies(wiring, wiring.run(wiring.right()))) << of;
    for (const falsify::BlockFault& fault : falsify::decode_faults()) {
      try {
        falsify::plant(fault, wiring.differentiated().program);
      } catch (const InputError&) {
        continue;  // this program has no such step
      }
      SCOPED_TRACE(of);
      planted[fault.words] += expect_death(wiring, fault, false);
    }
  }
  for (const falsify::BlockFault& fault : falsify::decode_faults())
    EXPECT_GE(planted[fault.words], 1) << fault.words << ": kills no program";
  EXPECT_GE(falsify::decode_faults().size(), 60u);
}

TEST(TrainingFaults, Die) {
  const falsify::System& system = *falsify::find_system("training_forward");
  const Wiring wiring(block_of(system, falsify::everything(system, true)));
  for (const falsify::BlockFault& fault : falsify::training_faults()) expect_death(wiring, fault);
}

/// Bugs of other projects that no edit of a program can make: this design refuses them, or has no place for them.
struct Impossible {
  std::string_view bug, why, test;
};
constexpr Impossible kImpossible[] = {
    {"N1", "the product of every projection leaves the CPU where it is large", "DispatchRules.ProjectionsLeaveTheCpu"},
    {"N2", "the calls of a configuration follow from its program, backward and adapters included",
     "PlannedCalls.AreThePreWarmListOfAConfiguration"},
    {"N3", "a session prepares the kernel of every step, or none runs", "SessionChecks.C_PREWARM_001"},
    {"N4", "a call that fails takes no back end from the next", "DispatchRules.AFailedCallLeavesTheNextOneItsBackEnd"},
    {"N5", "a failure passes out with its reason", "TrainingStep.AFailurePassesOutAndCountsNoStep"},
    {"N6", "a pass over a layer is of one thread and ends with its scope", "DispatchRules.ALayerPassEndsWithItsScope"},
    {"N7", "extents that do not fit are refused, and a transpose is a view of a shape",
     "Builders.RefuseWhatDoesNotFit"},
    {"N8", "a backward pass without its upstream gradient is refused", "Gradients.WrongLengthsAreRefused"},
    {"N9", "gradients of every input are the reference's, with drawn upstream gradients",
     "OperationGradients.AreThoseOfTheReferencesForEveryInput"},
    {"N10", "elements begin as seed and full name say", "TransformerParameters.BeginAsSeedAndFullNameSay"},
    {"N11", "biases and norms of another length are refused", "TransformerParameters.OfAnotherShapeAreRejected"},
    {"N12", "a transposed weight is refused", "SystemObligations.FailForWhatTheyAreFor"},
    {"N13", "a missing name is told from a wrong shape", "WeightFiles.OfAnotherModelChangeNothing"},
    {"N15", "heads of odd width are refused a rotation", "TransformerConfigs.AreRefusedInOneSentence"},
    {"N17", "heads that share no key-value heads evenly are refused",
     "SystemObligations.TheCheckOfHeadsIsSeenToBeMissing"},
    {"N23", "parameters of adapters are counted by their own extents", "TransformerParameters.AreCounted"},
    {"N24", "a rank of 0 is refused", "TransformerConfigs.AreRefusedInOneSentence"},
    {"N27", "one list of names and shapes serves listing and setting",
     "TransformerParameters.HaveTheNamesAndShapesOfCheckpoints"},
    {"N31", "each obligation is seen to fail for a planted fault", "SystemObligations.FailForWhatTheyAreFor"},
    {"N19", "a block checks its configuration and its rows, with adapters or without",
     "Transformers.RefuseRowsThatAreNotTheirs"},
    {"N18", "names choose the biases that train, whatever their weights do",
     "TrainingStep.BiasesOfAFrozenBaseTrainByName"},
    {"N26", "each bias and each norm is configured alone, and one that a layer lacks is refused",
     "CheckpointFiles.EachOptionalTensorMayStandAlone"},
    {"N65", "a dispatch beyond a device's limit is refused, and a weight above it is in parts",
     "Decoders.TablesAndHeadsAreInPartsThatADeviceBinds"},
    {"N66", "caches are states of one program, of a capacity that a token beyond is refused by",
     "DecoderErrors.AreOneSentence"},
    {"N72", "memory is the plan's, and the plan is what is allocated", "Memory.IsWhatThePlanSays"},
    {"N74", "a step's time is the device's own", "Sessions.StepsTakeAsLongAsTheWhole"},
    {"N75", "a parameter is known by its whole name, and elements of another shape are refused",
     "TransformerParameters.OfAnotherShapeAreRejected"},
    {"N76", "a step allocates nothing", "Tokens.AllocateNothingAndAreReadBackOnce"},
    {"N78", "every number of rows gives the same logits", "Decoding.TokenByTokenInChunksAndAfterAResetIsTheWholeModel"},
    {"N79", "names are a checkpoint's, and a missing one is an error", "WeightFiles.OfAnotherModelChangeNothing"},
    {"N81", "a token is one submission and one readback", "Tokens.AreOneSubmission"},
    {"N82", "scores that are not finite reach the logits", "Decoders.ScoresThatAreNotFiniteReachTheLogits"},
};

/// Bugs of blocks, by the fault above that is the same one.
struct SameFault {
  std::string_view bug, words;
};
constexpr SameFault kSameFaults[] = {
    {"N14", "the norm of queries has an eps of its own"},
    {"N16", "keys are rotated in float32, queries in double"},
    {"N20", "A is stored as [in, rank]"},
    {"N20", "B is stored as [rank, out]"},
    {"N21", "adapters begin alike in every layer"},
    {"N22", "the path of an adapter drops the bias"},
    {"N25", "the heads' results are a new leaf"},
    {"N28", "gradients of heads outlive a run"},
    {"N29", "the last head's gradient is left out"},
    {"N30", "no causal mask"},
};

/// N1 to N31 and N60 to N82 of the list of faults, each dead as a fault above or shown to be impossible.
TEST(NamedBugs, AreFaultsOrImpossible) {
  std::set<std::string> known, tests;
  for (const auto& faults : {falsify::decode_faults(), falsify::training_faults()})
    for (const falsify::BlockFault& fault : faults) known.emplace(fault.bugs);
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s)
    for (int t = 0; t < all.GetTestSuite(s)->total_test_count(); ++t) {
      const auto plain = [](std::string text, bool suite) {  // without "On/" and "/cpu"
        const std::size_t slash = text.find('/');
        return slash == text.npos ? text : suite ? text.substr(slash + 1) : text.substr(0, slash);
      };
      tests.insert(plain(all.GetTestSuite(s)->name(), true) + "." +
                   plain(all.GetTestSuite(s)->GetTestInfo(t)->name(), false));
    }
  for (const Impossible& i : kImpossible) {
    EXPECT_TRUE(tests.contains(std::string(i.test))) << i.bug << ": there is no test " << i.test;
    known.emplace(i.bug);
  }
  for (const SameFault& f : kSameFaults) {
    const auto all = falsify::block_faults();
    EXPECT_NE(std::ranges::find(all, f.words, &falsify::BlockFault::words), all.end()) << f.bug << ": " << f.words;
    known.emplace(f.bug);
  }
  for (const auto& [first, end] : {std::pair{1, 32}, {60, 83}})
    for (int bug = first; bug < end; ++bug) EXPECT_TRUE(known.contains(fmt::format("N{}", bug))) << "N" << bug;
}

}  // namespace
}  // namespace assay::program::mutants_test
