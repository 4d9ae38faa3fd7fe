#include "falsify/mutation/ptx/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/errors.hpp"

namespace assay::falsify::ptx {
namespace {

using Kind = Statement::Kind;

/// Returns every name that the text refers to.
std::set<std::string, std::less<>> names_in(std::string_view text) {
  const auto list = registers_in(text);
  return {list.begin(), list.end()};
}

/// Marks the items that the entry refers to, directly or indirectly.
std::vector<bool> needed(const Module& module, std::size_t entry) {
  std::map<std::string_view, std::vector<std::size_t>> named;  // a function may be declared before it is defined
  std::vector<bool> keep(module.items.size());
  for (std::size_t i = 0; i < module.items.size(); ++i) {
    keep[i] = module.items[i].name.empty() || i == entry;
    if (!module.items[i].name.empty() && !module.items[i].entry) named[module.items[i].name].push_back(i);
  }
  std::vector<std::size_t> open{entry};
  while (!open.empty()) {
    const std::size_t now = open.back();
    open.pop_back();
    for (const std::string& name : names_in(module.items[now].text)) {
      const auto found = named.find(name);
      if (found == named.end()) continue;
      for (const std::size_t i : found->second)
        if (!keep[i]) keep[i] = true, open.push_back(i);
    }
  }
  return keep;
}

/// Marks the labels of loops: labels that a later statement refers to.
std::vector<bool> loop_labels(const std::vector<Statement>& body) {
  std::vector<bool> found(body.size());
  std::map<std::string_view, std::vector<std::size_t>> open;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const Statement& s = body[i];
    if (s.kind == Kind::label) open[s.instruction.op].push_back(i);
    if (s.kind != Kind::instruction && s.kind != Kind::directive) continue;
    for (const std::string& name : registers_in(s.text)) {
      const auto label = open.find(name);
      if (label == open.end()) continue;
      for (const std::size_t at : label->second) found[at] = true;
    }
  }
  return found;
}

std::string declarations() {
  return fmt::format(
      "\n\t.reg .pred %assay_over;\n\t.reg .u32 %assay_turns;\n\t.reg .f32 {};\n\t.reg .b16 {}, {};\n\t.reg .b32 {};\n\t.reg .b64 {};",
      kFloat, kHalf, kShort, kWord, kLong);
}

std::string guarded_body(const std::vector<Statement>& body, const std::vector<Edit>& edits) {
  const std::vector<bool> loops = loop_labels(body);
  std::string text;
  auto edit = edits.begin();
  bool counting = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const Statement& s = body[i];
    if (!counting && (s.kind == Kind::instruction || s.kind == Kind::label)) {
      text += "\n\tmov.u32 %assay_turns, 0;";
      counting = true;
    }
    if (edit != edits.end() && edit->at == i) {
      for (const Instruction& x : edit->with) text += "\n\t" + x.text();
      ++edit;
    } else {
      text += s.text;
    }
    if (i == 0) text += declarations();
    if (loops[i])
      text += fmt::format(
          "\n\tadd.u32 %assay_turns, %assay_turns, 1;\n\tsetp.gt.u32 %assay_over, %assay_turns, {};\n\t@%assay_over trap;",
          kMaxIterations);
  }
  return text;
}

}  // namespace

Program::Program(const Module& module, std::string_view entry) : entry_(entry) {
  const auto found = std::ranges::find_if(module.items, [&](const Item& i) { return i.entry && i.name == entry; });
  if (found == module.items.end())
    throw InputError("PTX", fmt::format("there is no entry {}", entry), "name one of the file");
  const std::size_t own = static_cast<std::size_t>(found - module.items.begin());
  const std::vector<bool> keep = needed(module, own);
  for (std::size_t i = 0; i < module.items.size(); ++i) {
    if (!keep[i]) continue;
    const Item& item = module.items[i];
    if (i == own) own_ = sections_.size();
    sections_.push_back({item.text.substr(0, item.body), statements(std::string_view(item.text).substr(item.body))});
  }
  find_registers();
  for (std::size_t i = 0; i < code().size(); ++i)
    if (code()[i].kind == Kind::label) labels_.try_emplace(at(i).op, i);
}

/// Parses ".reg .f32 %f<422>;" and ".reg .pred p, q;".
void Program::find_registers() {
  for (const Statement& s : code()) {
    if (s.kind != Kind::directive) continue;
    const std::size_t at = s.text.find(".reg");
    if (at == std::string::npos) continue;
    const std::size_t dot = s.text.find('.', at + 1), end = s.text.find_first_of(" \t", dot);
    const std::string type = s.text.substr(dot + 1, end - dot - 1);
    for (std::string& name : registers_in(std::string_view(s.text).substr(end))) types_[std::move(name)] = type;
  }
}

std::string Program::text() const {
  std::string all;
  for (const Section& section : sections_) {
    all += section.head;
    for (const Statement& s : section.body) all += s.text;
  }
  return all;
}

std::string Program::guarded(const std::vector<Edit>& edits) const {
  std::string all;
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    all += sections_[i].head;
    all += guarded_body(sections_[i].body, i == own_ ? edits : std::vector<Edit>{});
  }
  return all + "\n";
}

std::string_view Program::type_of(std::string_view operand) const {
  auto found = types_.find(operand);
  if (found == types_.end()) {
    while (!operand.empty() && std::isdigit(static_cast<unsigned char>(operand.back())) != 0) operand.remove_suffix(1);
    found = operand.starts_with('%') ? types_.find(operand) : types_.end();
  }
  return found == types_.end() ? std::string_view{} : found->second;
}

bool Program::leads_back(std::size_t i) const {
  if (!is_instruction(i) || at(i).base() != "bra" || at(i).operands.empty()) return false;
  const auto label = labels_.find(at(i).operands[0]);
  return label != labels_.end() && label->second < i;
}

std::optional<std::size_t> Program::definition(std::string_view reg, std::size_t i) const {
  while (i-- > 0 && code()[i].kind != Kind::label) {
    if (!is_instruction(i)) continue;
    if (at(i).base() == "bra") break;
    const auto names = defined(at(i));
    if (std::ranges::find(names, reg) != names.end()) return i;
  }
  return std::nullopt;
}

std::string Program::neighbour(std::string_view reg, std::size_t i) const {
  const std::string_view type = type_of(reg);
  while (i-- > 0 && code()[i].kind != Kind::label) {
    if (!is_instruction(i)) continue;
    if (at(i).base() == "bra") break;
    for (const std::string& name : defined(at(i)))
      if (name != reg && type_of(name) == type && name.starts_with('%')) return name;
  }
  return {};
}

std::size_t Program::parameter_bytes(std::string_view name) const {
  const std::string& head = sections_[own_].head;
  const std::size_t at = head.find(fmt::format(".b8 {}[", name));
  return at == std::string::npos ? 0 : std::stoul(head.substr(head.find('[', at) + 1));
}

std::vector<std::string> defined(const Instruction& x) {
  static const std::set<std::string_view> none = {"st",     "red",   "bar", "bra",      "ret",  "exit",   "trap",
                                                  "membar", "fence", "cp",  "prefetch", "call", "barrier"};
  if (x.operands.empty() || none.contains(x.base()) || x.op.starts_with("wmma.store")) {
    if (x.op.starts_with("bar.red")) return registers_in(x.operands.empty() ? "" : x.operands[0]);
    return {};
  }
  return registers_in(x.operands[0]);
}

}  // namespace assay::falsify::ptx
