// Every family of faults on a few instructions: the mutated words equal those assembled from the text of the mutation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <spirv-tools/libspirv.hpp>

#include "falsify/mutation/spirv/mutant.hpp"

namespace assay::falsify::spirv {
namespace {

/// Ids below 60 are declared here; 99 is the largest, so that mutants use ids from 100.
constexpr const char* kModule = R"(
OpCapability Shader
OpCapability GroupNonUniform
OpCapability GroupNonUniformArithmetic
%1 = OpExtInstImport "GLSL.std.450"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %2 "main" %30 %31 %32
OpExecutionMode %2 LocalSize 4 1 1
OpDecorate %30 BuiltIn LocalInvocationId
OpDecorate %20 ArrayStride 4
OpDecorate %21 Block
OpMemberDecorate %21 0 Offset 0
OpDecorate %31 DescriptorSet 0
OpDecorate %31 Binding 0
%3 = OpTypeVoid
%4 = OpTypeFunction %3
%5 = OpTypeInt 32 0
%6 = OpTypeFloat 32
%7 = OpTypeBool
%8 = OpTypeVector %5 3
%9 = OpConstant %5 0
%10 = OpConstant %5 1
%11 = OpConstant %5 2
%12 = OpConstant %6 1
%13 = OpConstant %5 264
%14 = OpConstant %5 3
%15 = OpTypePointer StorageBuffer %6
%16 = OpTypePointer Input %8
%17 = OpTypePointer Input %5
%18 = OpTypePointer Workgroup %6
%19 = OpConstant %5 5
%20 = OpTypeRuntimeArray %6
%21 = OpTypeStruct %20
%22 = OpTypePointer StorageBuffer %21
%23 = OpTypePointer Function %6
%24 = OpConstantTrue %7
%30 = OpVariable %16 Input
%31 = OpVariable %22 StorageBuffer
%32 = OpVariable %18 Workgroup
%99 = OpConstant %6 77
{}
%2 = OpFunction %3 None %4
%50 = OpLabel
%33 = OpVariable %23 Function
%60 = OpAccessChain %17 %30 %9
%61 = OpLoad %5 %60
%62 = OpAccessChain %15 %31 %9 %61
%63 = OpLoad %6 %62
%64 = OpLoad %6 %32
{}
OpReturn
OpFunctionEnd
)";

Words assemble(const std::string& body, const std::string& declarations = "") {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  std::string why;
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t& at, const char* text) {
    why += fmt::format("line {}: {}\n", at.line, text);
  });
  Words words;
  const std::string text = fmt::format(fmt::runtime(kModule), declarations, body);
  if (!tools.Assemble(text, &words, SPV_TEXT_TO_BINARY_OPTION_PRESERVE_NUMERIC_IDS))
    throw std::runtime_error(why + text);
  return words;
}

std::string disassemble(const Words& words) {
  std::string text;
  spvtools::SpirvTools(SPV_ENV_VULKAN_1_2).Disassemble(words, &text, SPV_BINARY_TO_TEXT_OPTION_NO_HEADER);
  return text;
}

/// A mutant: the replacement of `from` in the body, and the declarations it adds.
struct Wanted {
  std::string from, to, declarations{};
};

/// Expects exactly these mutants of the family, in any order, among edits in the body.
void expect(std::string_view family, const std::string& body, const std::vector<Wanted>& wanted) {
  const Words right = assemble(body);
  ASSERT_EQ(invalid(right), std::nullopt) << body;
  const Module module(right);
  std::vector<Words> got, want;
  for (const Mutant& mutant : mutants(Analysis(module)))
    if (mutant.family == family &&
        mutant.at >= module.code.size() - 2 - static_cast<std::size_t>(std::ranges::count(body, '\n')))
      got.push_back(apply(module, mutant));
  for (const Wanted& w : wanted) {
    std::string changed = body;
    const std::size_t at = changed.find(w.from);
    ASSERT_NE(at, std::string::npos) << w.from;
    changed.replace(at, w.from.size(), w.to);
    want.push_back(assemble(changed, w.declarations));
    EXPECT_EQ(invalid(want.back()), std::nullopt) << changed;
  }
  for (const Words& words : want)
    EXPECT_NE(std::ranges::find(got, words), got.end()) << family << ": no such mutant\n" << disassemble(words);
  for (const Words& words : got) {
    EXPECT_EQ(invalid(words), std::nullopt);
    EXPECT_NE(std::ranges::find(want, words), want.end()) << family << ": not expected\n" << disassemble(words);
  }
  EXPECT_EQ(got.size(), want.size()) << family;
}

TEST(Operators, Arithmetic) {
  expect("arithmetic", "%70 = OpFAdd %6 %63 %64\nOpStore %62 %70\n", {{"OpFAdd", "OpFSub"}, {"OpFAdd", "OpFMul"}});
  expect("arithmetic", "%70 = OpFDiv %6 %63 %64\nOpStore %62 %70\n", {{"OpFDiv", "OpFMul"}});
  expect("arithmetic", "%70 = OpFNegate %6 %63\nOpStore %62 %70\n", {{"OpFNegate", "OpCopyObject"}});
  expect("arithmetic", "%70 = OpUDiv %5 %61 %11\n%71 = OpConvertUToF %6 %70\nOpStore %62 %71\n",
         {{"OpUDiv", "OpIMul"}, {"OpUDiv", "OpUMod"}, {"OpConvertUToF", "OpConvertSToF"}});
}

TEST(Operators, Function) {
  expect("function", "%70 = OpExtInst %6 %1 Exp %63\nOpStore %62 %70\n", {{"Exp", "Exp2"}});
  expect("function", "%70 = OpExtInst %6 %1 FMax %63 %64\nOpStore %62 %70\n", {{"FMax", "FMin"}});
  expect("function", "%70 = OpExtInst %6 %1 FAbs %63\nOpStore %62 %70\n",
         {{"FAbs", "FSign"}, {"OpExtInst %6 %1 FAbs %63", "OpCopyObject %6 %63"}});
  expect("function", "%70 = OpExtInst %6 %1 Fma %63 %64 %12\nOpStore %62 %70\n",
         {{"%63 %64 %12", "%12 %64 %63"}, {"%63 %64 %12", "%63 %12 %64"}});
}

TEST(Operators, FusedMultiplyAdd) {
  expect("fma", "%70 = OpExtInst %6 %1 Fma %63 %64 %12\nOpStore %62 %70\n",
         {{"OpExtInst %6 %1 Fma %63 %64 %12", "OpFMul %6 %63 %64"}});
}

TEST(Operators, Comparison) {
  expect("comparison", "%70 = OpULessThan %7 %61 %11\n%71 = OpSelect %6 %70 %63 %64\nOpStore %62 %71\n",
         {{"OpULessThan", "OpULessThanEqual"}, {"OpULessThan", "OpSLessThan"}});
  expect("comparison", "%70 = OpFOrdEqual %7 %63 %64\n%71 = OpSelect %6 %70 %63 %64\nOpStore %62 %71\n",
         {{"OpFOrdEqual", "OpFUnordNotEqual"}, {"OpFOrdEqual", "OpFUnordEqual"}});
}

TEST(Operators, Select) {
  expect("select", "%70 = OpULessThan %7 %61 %11\n%71 = OpSelect %6 %70 %63 %64\nOpStore %62 %71\n",
         {{"%63 %64", "%64 %63"}});
}

TEST(Operators, OperandOrder) {
  expect("operand-order", "%70 = OpFSub %6 %63 %64\nOpStore %62 %70\n", {{"%63 %64", "%64 %63"}});
  expect("operand-order", "%70 = OpFAdd %6 %63 %64\nOpStore %62 %70\n", {});  // commutative
}

TEST(Operators, Duplicate) {
  expect("duplicate", "%70 = OpFMul %6 %63 %64\nOpStore %62 %70\n", {{"%63 %64", "%64 %64"}, {"%63 %64", "%63 %63"}});
}

TEST(Operators, ConstantsChangeWhereTheyAreUsed) {
  expect("constant", "%70 = OpIMul %5 %61 %11\n%71 = OpConvertUToF %6 %70\nOpStore %62 %71\n",
         {{"%61 %11", "%61 %14"}, {"%61 %11", "%61 %10"}, {"%61 %11", "%61 %100", "%100 = OpConstant %5 4"}});
  expect("constant", "OpStore %62 %12\n",
         {{"%62 %12", "%62 %100", "%100 = OpConstant %6 0x1.19999ap+0"},
          {"%62 %12", "%62 %100", "%100 = OpConstant %6 2"},
          {"%62 %12", "%62 %100", "%100 = OpConstant %6 -1"},
          {"%62 %12", "%62 %100", "%100 = OpConstant %6 0"}});
}

TEST(Operators, Store) {
  expect("store", "OpStore %62 %64\nOpStore %32 %63\n", {{"OpStore %62 %64\n", ""}, {"OpStore %32 %63\n", ""}});
  expect("store", "OpStore %33 %64\n", {});  // never loaded
  expect("store", "OpStore %33 %64\n%70 = OpLoad %6 %33\nOpStore %62 %70\n",
         {{"OpStore %33 %64\n", ""}, {"OpStore %62 %70\n", ""}});
}

TEST(Operators, Barrier) {
  expect("barrier", "OpStore %32 %63\nOpControlBarrier %11 %11 %13\nOpMemoryBarrier %11 %13\n",
         {{"OpControlBarrier %11 %11 %13\n", ""}, {"OpMemoryBarrier %11 %13\n", ""}});
}

TEST(Operators, Branch) {
  expect("branch",
         "%70 = OpULessThan %7 %61 %11\nOpSelectionMerge %72 None\nOpBranchConditional %70 %71 %72\n%71 = OpLabel\n"
         "OpStore %62 %64\nOpBranch %72\n%72 = OpLabel\n",
         {{"%70 %71 %72", "%70 %72 %71"},
          {"OpBranchConditional %70", "OpBranchConditional %24"},
          {"OpBranchConditional %70", "OpBranchConditional %100", "%100 = OpConstantFalse %7"}});
}

constexpr const char* kLoop =
    "OpBranch %70\n%70 = OpLabel\n%71 = OpPhi %5 %9 %50 %72 %73\n%74 = OpULessThan %7 %71 {}\nOpLoopMerge %75 %73 None\n"
    "OpBranchConditional %74 %76 %75\n%76 = OpLabel\nOpStore %62 %64\nOpBranch %73\n%73 = OpLabel\n%72 = OpIAdd %5 %71 %10\n"
    "OpBranch %70\n%75 = OpLabel\n";

TEST(Operators, Loop) {
  expect("loop", fmt::format(kLoop, "%11"), {{"%71 %11", "%71 %14"}, {"%71 %11", "%71 %10"}, {"%71 %10", "%71 %11"}});
  expect("loop", fmt::format(kLoop, "%61"),
         {{"%74 = OpULessThan %7 %71 %61", "%100 = OpIAdd %5 %61 %10\n%74 = OpULessThan %7 %71 %100"},
          {"%74 = OpULessThan %7 %71 %61", "%100 = OpIAdd %5 %61 %101\n%74 = OpULessThan %7 %71 %100",
           "%101 = OpConstant %5 0xffffffff"},
          {"%71 %10", "%71 %11"}});
}

TEST(Operators, Subgroup) {
  expect("subgroup", "%70 = OpGroupNonUniformFAdd %6 %14 Reduce %63\nOpStore %62 %70\n",
         {{"FAdd", "FMax"}, {"OpGroupNonUniformFAdd %6 %14 Reduce %63", "OpCopyObject %6 %63"}});
}

TEST(Operators, Component) {
  expect("component",
         "%70 = OpAccessChain %17 %30 %10\n%71 = OpLoad %5 %70\n%72 = OpConvertUToF %6 %71\nOpStore %62 %72\n",
         {{"%30 %10", "%30 %9"}, {"%30 %10", "%30 %11"}});
}

TEST(Operators, Index) {
  // The nearest earlier values of the same type that dominate the index: %71; then %61 is the index itself; then none
  // is left.
  expect(
      "index",
      "%71 = OpIMul %5 %61 %11\n%70 = OpAccessChain %15 %31 %9 %61\nOpStore %70 %64\n%72 = OpAccessChain %15 %31 %9 %71\nOpStore %72 %64\n",
      {{"%70 = OpAccessChain %15 %31 %9 %61", "%100 = OpIAdd %5 %61 %10\n%70 = OpAccessChain %15 %31 %9 %100"},
       {"%70 = OpAccessChain %15 %31 %9 %61", "%70 = OpAccessChain %15 %31 %9 %71"},
       {"%72 = OpAccessChain %15 %31 %9 %71", "%100 = OpIAdd %5 %71 %10\n%72 = OpAccessChain %15 %31 %9 %100"},
       {"%72 = OpAccessChain %15 %31 %9 %71", "%72 = OpAccessChain %15 %31 %9 %61"}});
}

TEST(Operators, Half) {
  expect("half", "%70 = OpFMul %6 %63 %64\nOpStore %62 %70\n",
         {{"%70 = OpFMul %6 %63 %64", "%100 = OpFMul %6 %63 %64\n%70 = OpQuantizeToF16 %6 %100"}});
}

TEST(Operators, Bfloat16) {
  expect(
      "bfloat16", "%70 = OpFMul %6 %63 %64\nOpStore %62 %70\n",
      {{"%70 = OpFMul %6 %63 %64",
        "%100 = OpFMul %6 %63 %64\n%102 = OpBitcast %5 %100\n%103 = OpBitwiseAnd %5 %102 %101\n%70 = OpBitcast %6 %103",
        "%101 = OpConstant %5 0xffff0000"}});
}

TEST(Operators, EveryFamilyIsTestedAndTwoAreHeldOut) {
  const auto table = operators();
  EXPECT_EQ(table.size(), 17U) << "a new family needs its test above";
  EXPECT_EQ(std::ranges::count_if(table, &Operator::held_out), 2);
}

TEST(Operators, DescriptionsSayWhatAndWhere) {
  const Module module(assemble("%70 = OpFAdd %6 %63 %64\nOpStore %62 %70\n"));
  for (const Mutant& m : mutants(Analysis(module)))
    if (m.family == "arithmetic") {
      EXPECT_EQ(m.description,
                fmt::format("OpFAdd at {} -> OpFSub: (binding 0[LocalInvocationId.x] + shared %32)", m.at));
      return;
    }
  FAIL();
}

}  // namespace
}  // namespace assay::falsify::spirv
