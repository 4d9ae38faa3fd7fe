#include "falsify/mutation/spirv/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace assay::falsify::spirv {
namespace {

/// True for instructions that end or structure control flow, or wait: never dead.
bool affects_control_flow(spv::Op op) {
  switch (op) {
    case spv::Op::OpBranch:
    case spv::Op::OpBranchConditional:
    case spv::Op::OpSwitch:
    case spv::Op::OpReturn:
    case spv::Op::OpReturnValue:
    case spv::Op::OpKill:
    case spv::Op::OpUnreachable:
    case spv::Op::OpControlBarrier:
    case spv::Op::OpMemoryBarrier:
    case spv::Op::OpFunctionCall: return true;
    default: return false;
  }
}

std::string_view infix(spv::Op op) {
  switch (op) {
    case spv::Op::OpIAdd:
    case spv::Op::OpFAdd: return "+";
    case spv::Op::OpISub:
    case spv::Op::OpFSub: return "-";
    case spv::Op::OpIMul:
    case spv::Op::OpFMul:
    case spv::Op::OpVectorTimesScalar: return "*";
    case spv::Op::OpUDiv:
    case spv::Op::OpSDiv:
    case spv::Op::OpFDiv: return "/";
    case spv::Op::OpUMod: return "%";
    case spv::Op::OpShiftLeftLogical: return "<<";
    case spv::Op::OpShiftRightLogical: return ">>";
    case spv::Op::OpBitwiseAnd: return "&";
    case spv::Op::OpBitwiseOr: return "|";
    case spv::Op::OpULessThan:
    case spv::Op::OpSLessThan:
    case spv::Op::OpFOrdLessThan: return "<";
    case spv::Op::OpULessThanEqual:
    case spv::Op::OpSLessThanEqual:
    case spv::Op::OpFOrdLessThanEqual: return "<=";
    case spv::Op::OpUGreaterThan:
    case spv::Op::OpSGreaterThan:
    case spv::Op::OpFOrdGreaterThan: return ">";
    case spv::Op::OpUGreaterThanEqual:
    case spv::Op::OpSGreaterThanEqual:
    case spv::Op::OpFOrdGreaterThanEqual: return ">=";
    case spv::Op::OpIEqual:
    case spv::Op::OpFOrdEqual: return "==";
    case spv::Op::OpINotEqual:
    case spv::Op::OpFUnordNotEqual: return "!=";
    default: return {};
  }
}

std::string builtin_name(std::uint32_t builtin) {
  switch (static_cast<spv::BuiltIn>(builtin)) {
    case spv::BuiltIn::GlobalInvocationId: return "GlobalInvocationId";
    case spv::BuiltIn::LocalInvocationId: return "LocalInvocationId";
    case spv::BuiltIn::WorkgroupId: return "WorkgroupId";
    case spv::BuiltIn::NumWorkgroups: return "NumWorkgroups";
    case spv::BuiltIn::LocalInvocationIndex: return "LocalInvocationIndex";
    default: return fmt::format("built-in {}", builtin);
  }
}

}  // namespace

Analysis::Analysis(const Module& module) : module_(module) {
  find_definitions();
  find_blocks();
  find_dominators();
  find_live();
}

void Analysis::find_definitions() {
  defined_at_.assign(module_.header[3], size());
  for (std::size_t i = 0; i < size(); ++i) {
    const Instruction& x = at(i);
    if (x.result != 0) defined_at_[x.result] = i;
    if (x.op == spv::Op::OpDecorate)
      decorations_[{x.words[1], static_cast<spv::Decoration>(x.words[2])}] = x.words.size() > 3 ? x.words[3] : 0;
  }
}

const Instruction* Analysis::definition(Id id) const {
  return id < defined_at_.size() && defined_at_[id] < size() ? &at(defined_at_[id]) : nullptr;
}

spv::Op Analysis::opcode(Id id) const {
  const Instruction* d = definition(id);
  return d == nullptr ? spv::Op::OpNop : d->op;
}

Id Analysis::type_of(Id id) const {
  const Instruction* d = definition(id);
  return d == nullptr ? 0 : d->type;
}

Id Analysis::scalar_of(Id type) const {
  return opcode(type) == spv::Op::OpTypeVector ? definition(type)->words[2] : type;
}
bool Analysis::is_float(Id type) const {
  const Instruction* d = definition(scalar_of(type));
  return d != nullptr && d->op == spv::Op::OpTypeFloat && d->words[2] == 32;
}
bool Analysis::is_int(Id type) const {
  const Instruction* d = definition(type);
  return d != nullptr && d->op == spv::Op::OpTypeInt && d->words[2] == 32;
}
bool Analysis::is_signed(Id type) const { return is_int(type) && definition(type)->words[3] == 1; }
bool Analysis::is_bool(Id type) const { return opcode(type) == spv::Op::OpTypeBool; }

Id Analysis::variable_of(Id pointer) const {
  while (is_chain(opcode(pointer)) || opcode(pointer) == spv::Op::OpCopyObject)
    pointer = definition(pointer)->operand(0);
  return opcode(pointer) == spv::Op::OpVariable ? pointer : 0;
}

std::optional<std::uint32_t> Analysis::decoration(Id id, spv::Decoration decoration) const {
  const auto found = decorations_.find({id, decoration});
  return found == decorations_.end() ? std::nullopt : std::optional(found->second);
}

bool Analysis::is_coordinate(Id variable) const {
  const auto builtin = decoration(variable, spv::Decoration::BuiltIn);
  if (!builtin) return false;
  const auto is = static_cast<spv::BuiltIn>(*builtin);
  return is == spv::BuiltIn::GlobalInvocationId || is == spv::BuiltIn::LocalInvocationId ||
         is == spv::BuiltIn::WorkgroupId;
}

void Analysis::find_blocks() {
  block_.assign(size(), size());
  std::size_t label = size();
  for (std::size_t i = 0; i < size(); ++i) {
    if (at(i).op == spv::Op::OpFunction || at(i).op == spv::Op::OpFunctionEnd) label = size();
    if (at(i).op == spv::Op::OpLabel) label = i;
    block_[i] = label;
  }
}

std::size_t Analysis::end_of_block(std::size_t label) const {
  std::size_t end = label;
  while (end + 1 < size() && block_[end + 1] == label) ++end;
  return end;
}

/// The iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001). SPIR-V orders
/// blocks so that each follows its dominator, which suffices here in place of a reverse postorder.
void Analysis::find_dominators() {
  std::map<std::size_t, std::vector<std::size_t>> predecessors;
  std::vector<std::size_t> labels;
  for (std::size_t i = 0; i < size(); ++i) {
    if (at(i).op != spv::Op::OpLabel) continue;
    labels.push_back(i);
    const Instruction& end = at(end_of_block(i));
    for (const std::uint16_t position : end.ids)
      if (opcode(end.words[position]) == spv::Op::OpLabel) predecessors[index_of(end.words[position])].push_back(i);
  }
  const auto meet = [&](std::size_t a, std::size_t b) {
    while (a != b) (a > b ? a : b) = dominator_.at(std::max(a, b));
    return a;
  };
  // Unreachable blocks have no dominator and are skipped.
  for (std::size_t i = 0, entry = size(); i < size(); ++i) {
    if (at(i).op == spv::Op::OpFunction) entry = i;
    if (at(i).op == spv::Op::OpLabel && entry < size()) dominator_[i] = i, entry = size();
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t label : labels) {
      std::optional<std::size_t> nearest;
      for (std::size_t p : predecessors[label])
        if (dominator_.contains(p)) nearest = nearest ? meet(*nearest, p) : p;
      if (!nearest || (dominator_.contains(label) && dominator_[label] == *nearest)) continue;
      dominator_[label] = *nearest;
      changed = true;
    }
  }
}

bool Analysis::available(Id id, std::size_t index) const {
  const std::size_t defined = defined_at_[id];
  if (defined >= size()) return false;
  if (block_[defined] >= size()) return true;  // at module level
  if (block_[defined] == block_[index]) return defined < index;
  for (std::size_t b = block_[index]; dominator_.contains(b);) {
    const std::size_t above = dominator_.at(b);
    if (above == block_[defined]) return true;
    if (above == b) return false;
    b = above;
  }
  return false;
}

// glslc leaves thousands of stores that nothing reads. Their mutants equal the shader, and would distort every score.
void Analysis::find_live() {
  live_.assign(size(), false);
  const auto of_function = [&](Id variable) {
    return variable != 0 &&
           static_cast<spv::StorageClass>(definition(variable)->words[3]) == spv::StorageClass::Function;
  };
  std::multimap<Id, std::size_t> stores;  // into variables of the function
  std::vector<std::size_t> work;
  for (std::size_t i = 0; i < size(); ++i) {
    if (block_[i] >= size()) continue;
    if (at(i).op == spv::Op::OpStore && of_function(variable_of(at(i).operand(0))))
      stores.emplace(variable_of(at(i).operand(0)), i);
    else if (affects_control_flow(at(i).op) || (at(i).result == 0 && !at(i).ids.empty()) ||
             name(at(i).op).starts_with("OpAtomic"))
      work.push_back(i);
  }
  while (!work.empty()) {
    const std::size_t i = work.back();
    work.pop_back();
    if (live_[i]) continue;
    live_[i] = true;
    for (const std::uint16_t position : at(i).ids) {
      const Id id = at(i).words[position];
      if (definition(id) != nullptr && block_[index_of(id)] < size()) work.push_back(index_of(id));
    }
    if (at(i).op == spv::Op::OpVariable)
      for (auto [store, end] = stores.equal_range(at(i).result); store != end; ++store) work.push_back(store->second);
  }
}

std::string Analysis::chain_text(const Instruction& chain, int depth) const {
  const Id variable = variable_of(chain.operand(0));
  std::string text = this->text(chain.operand(0), depth);
  const bool buffer = variable != 0 && decoration(variable, spv::Decoration::Binding).has_value();
  const bool builtin = variable != 0 && decoration(variable, spv::Decoration::BuiltIn).has_value();
  for (std::size_t i = buffer ? 2 : 1; i < chain.ids.size(); ++i) {
    const std::string index = this->text(chain.operand(i), depth - 1);
    if (builtin && (index == "0" || index == "1" || index == "2")) text += std::string(".") + "xyz"[index[0] - '0'];
    else text += "[" + index + "]";
  }
  return text;
}

std::string Analysis::text(Id id, int depth) const {
  const Instruction* d = definition(id);
  const std::string plain = fmt::format("%{}", id);
  if (d == nullptr) return plain;
  switch (d->op) {
    case spv::Op::OpConstant:
      if (is_float(d->type)) return fmt::format("{}", std::bit_cast<float>(d->words[3]));
      return is_signed(d->type) ? fmt::format("{}", std::bit_cast<std::int32_t>(d->words[3]))
                                : fmt::format("{}", d->words[3]);
    case spv::Op::OpConstantTrue: return "true";
    case spv::Op::OpConstantFalse: return "false";
    case spv::Op::OpSpecConstantTrue:
    case spv::Op::OpSpecConstantFalse:
    case spv::Op::OpSpecConstant:
      return fmt::format("specialization {}", decoration(id, spv::Decoration::SpecId).value_or(0));
    case spv::Op::OpVariable:
      if (const auto builtin = decoration(id, spv::Decoration::BuiltIn)) return builtin_name(*builtin);
      if (const auto binding = decoration(id, spv::Decoration::Binding)) return fmt::format("binding {}", *binding);
      switch (static_cast<spv::StorageClass>(d->words[3])) {
        case spv::StorageClass::PushConstant: return "push";
        case spv::StorageClass::Workgroup: return "shared " + plain;
        default: return plain;
      }
    case spv::Op::OpLoad: return text(d->operand(0), depth);
    case spv::Op::OpAccessChain: return chain_text(*d, depth);
    default: break;
  }
  const std::string_view sign = infix(d->op);
  if (depth <= 0 || sign.empty()) return plain;
  const std::string left = text(d->operand(0), depth - 1), right = text(d->operand(1), depth - 1);
  return fmt::format("({} {} {})", left, sign, right);
}

}  // namespace assay::falsify::spirv
