#include "program/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "contract/enforce.hpp"
#include "core/errors.hpp"
#include "core/half.hpp"
#include "serve/scratch.hpp"
#include "serve/reservation.hpp"
#include "serve/select.hpp"
#include "serve/serve.hpp"

namespace assay::program {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns the lock that a session holds while it uses the device. It outlives all sessions.
std::recursive_mutex& turn_of(const Device& device) {
  static std::mutex guard;
  static std::map<const Device*, std::recursive_mutex>* const turns = new std::map<const Device*, std::recursive_mutex>;
  const std::scoped_lock held(guard);
  return (*turns)[&device];
}
using Turn = std::unique_lock<std::recursive_mutex>;

/// Returns the failure of a kernel, with the step that called it.
DeviceError in_step(const DeviceError& e, const Program& program, std::size_t s, const Kernel& kernel) {
  return {fmt::format("step {} of {}, {}, by {}", s + 1, program.steps.size(), describe(program.steps[s]), kernel.id),
          e.code, e.what()};
}

}  // namespace

void expect_room(Device& device, std::span<const Program* const> programs, const SessionOptions& options) {
  if (options.shares != nullptr) return;  // a part of it is there already
  const Reservation fits(device, bytes_together(programs, options.reuse));
}

Session::Session(Program program, Device& device, SessionOptions options)
    : program_(std::move(program)), device_(device), turn_(turn_of(device)),
      plan_(program::plan(program_, options.reuse)), check_(std::move(options.check)),
      check_every_(options.check_every) {
  if (check_every_ > 0 && !check_)
    throw InputError("check_every", "nothing checks a run", "give SessionOptions::check");
  const Turn turn(turn_);
  try {
    open(options);
  } catch (...) {
    close();
    throw;
  }
}

void Session::open(const SessionOptions& options) {
  slots_.resize(plan_.slot_bytes.size());
  for (std::size_t i = 0; i < program_.storages.size(); ++i) changes_.push_back(std::make_shared<std::uint64_t>(0));
  is_written_.resize(program_.storages.size());
  std::vector<bool> own(slots_.size(), true);
  if (options.shares != nullptr) share(*options.shares, own);
  std::size_t bytes = 0;
  for (std::size_t s = 0; s < slots_.size(); ++s) bytes += own[s] ? plan_.slot_bytes[s] : 0;
  { const Reservation fits(device_, bytes); }  // before anything is allocated, as kernels are prepared on memory
  choose_kernels(options.choose);
  allocate(bytes + plan_.scratch_bytes, own);
  last_user_.assign(slots_.size(), -1);
  for (std::size_t i = 0; i < program_.storages.size(); ++i)
    if (program_.storages[i].kind != Kind::temporary) last_user_[slot(i)] = static_cast<std::int32_t>(i);
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    Call call{step.dims, step.params, {}};
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      const Value v = step.tensors[t];
      call.tensors.push_back(tensor(v));
      const std::int32_t storage = program_[v].storage;
      if (step.op->tensors[t].role != Role::in) is_written_[static_cast<std::size_t>(storage)] = true;
      last_user_[slot(static_cast<std::size_t>(storage))] = storage;
      if (const Storage& of = program_.storage_of(v); of.kind == Kind::input && of.elements > 0)
        unset_[storage] = {{0, of.elements}};
    }
    calls_.push_back(std::move(call));
    add_preconditions(s);
  }
  cut(options.adjusted);
  for (Piece& piece : pieces_) record(piece);
}

Session::~Session() {
  const Turn turn(turn_);
  close();
}

void Session::close() noexcept {
  pieces_.clear();
  buffers_.clear();
}

void Session::choose_kernels(const std::function<const Kernel*(const Step&)>& choose) {
  ScratchScope scratch;
  for (const Step& step : program_.steps) {
    Call call{step.dims, step.params, {}};  // without memory
    for (const Value v : step.tensors)
      call.tensors.push_back({program_.storage_of(v).dtype, nullptr, program_[v].shape, program_[v].strides});
    const Kernel* chosen = choose ? choose(step) : nullptr;
    if (chosen != nullptr && (chosen->op != step.op->name || chosen->backend != device_.backend()))
      throw InputError(
          describe(step),
          fmt::format("the kernel {} was chosen, which is of {} for {}", chosen->id, chosen->op, name(chosen->backend)),
          fmt::format("choose one of {} for {}, or none", step.op->name, name(device_.backend())));
    // One kernel may be chosen for all steps of its operation, whose formats may differ.
    if (chosen != nullptr && refuses_storage(*chosen, call)) chosen = nullptr;
    try {
      kernels_.push_back(chosen != nullptr ? chosen : &select_kernel(step.op->name, device_.backend(), call));
      for (Tensor& t : call.tensors) t.strides = row_major_strides(t.shape);  // as Device::prepare() takes it
      try {
        device_.prepare(*kernels_.back(), call);
      } catch (const DeviceError& e) {
        throw in_step(e, program_, kernels_.size() - 1, *kernels_.back());
      }
    } catch (const Unavailable& e) {
      throw Unavailable(fmt::format("{} for {}", e.subject, describe(step)), e.why);
    }
  }
  plan_.scratch_bytes = scratch.most();
  plan_.bytes += plan_.scratch_bytes;
}

void Session::cut(const std::vector<std::string>& adjusted) {
  for (const std::string& label : adjusted)
    if (std::ranges::find(program_.steps, label, &Step::label) == program_.steps.end())
      throw InputError(label, "the program has no step of this label to adjust", "use a label of Program::steps");
  bool alone = true;
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const bool before = std::exchange(alone, std::ranges::find(adjusted, program_.steps[s].label) != adjusted.end());
    if (before || alone) pieces_.push_back({s, s, nullptr});
    pieces_.back().end = s + 1;
  }
}

void Session::record(Piece& piece) {
  piece.recording.reset();
  piece.recording = device_.record([&] {
    for (std::size_t s = piece.begin; s < piece.end; ++s) run_step(s);
  });
}

void Session::run_step(std::size_t s) {
  try {
    kernels_[s]->run(calls_[s], device_);
  } catch (const DeviceError& e) {
    throw in_step(e, program_, s, *kernels_[s]);
  }
}

void Session::set_param(std::string_view label, std::string_view param, double value) {
  const auto step = std::ranges::find(program_.steps, label, &Step::label);
  if (step == program_.steps.end())
    throw InputError(std::string(label), "the program has no step of this label", "use a label of Program::steps");
  const auto info = std::ranges::find(step->op->params, param, &ParamInfo::name);
  if (info == step->op->params.end())
    throw InputError(describe(*step), fmt::format("it has no parameter {}", param),
                     fmt::format("see assay explain {}", step->op->name));
  const auto s = static_cast<std::size_t>(step - program_.steps.begin()),
             p = static_cast<std::size_t>(info - step->op->params.begin());
  if (step->params[p] == value) return;
  const Turn turn(turn_);
  step->params[p] = calls_[s].params[p] = value;
  for (Precondition& precondition : preconditions_) {
    if (precondition.step == s) precondition.call.params[p] = value, precondition.due = true;
    // Steps that were alike may differ from now on.
    if (!std::exchange(precondition.repeats, false)) continue;
    precondition.due = true;
    for (Precondition::Copy& copy : precondition.copies) copy.current = false;
  }
  const auto piece = std::ranges::find_if(pieces_, [s](const Piece& p) { return s < p.end; });
  if (piece->recording) record(*piece);
}

void Session::allocate(std::size_t bytes, const std::vector<bool>& own) {
  {
    const Reservation reservation(device_, bytes);  // refuses all of it, or none
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (!own[s]) continue;
      buffers_.push_back(device_.allocate(plan_.slot_bytes[s]));
      slots_[s] = static_cast<std::byte*>(buffers_.back().address());
    }
    if (plan_.scratch_bytes > 0) {
      buffers_.push_back(device_.allocate(plan_.scratch_bytes));
      scratch_ = {static_cast<std::byte*>(buffers_.back().address()), plan_.scratch_bytes};
    }
  }
  for (std::size_t s = 0; s < slots_.size(); ++s)
    if (own[s]) clear(s);
}

void Session::share(const Session& other, std::vector<bool>& own) {
  const auto outlives = [](Kind kind) {
    return kind == Kind::parameter || kind == Kind::state || kind == Kind::gradient;
  };
  const auto refuse = [](const std::string& name, std::string_view problem) {
    throw InputError(name, std::string(problem), "share between programs of one model");
  };
  if (&other.device_ != &device_) refuse("session", "it shares storages of another device");
  const auto& theirs = other.program_.storages;
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < theirs.size(); ++i)
    if (outlives(theirs[i].kind) && !by_name.emplace(theirs[i].name, i).second)
      refuse(theirs[i].name, "two storages of the other program have this name");
  std::set<std::string_view> own_names;
  for (std::size_t i = 0; i < program_.storages.size(); ++i) {
    const Storage& storage = program_.storages[i];
    if (!outlives(storage.kind)) continue;
    if (!own_names.insert(storage.name).second) refuse(storage.name, "two storages of this program have this name");
    const auto at = by_name.find(storage.name);
    if (at == by_name.end()) continue;
    const auto found = theirs.begin() + static_cast<std::ptrdiff_t>(at->second);
    if (found->dtype != storage.dtype || found->elements != storage.elements)
      refuse(storage.name, "the two programs give it different extents or types");
    own[slot(i)] = false;
    slots_[slot(i)] = other.slots_[other.slot(at->second)], changes_[i] = other.changes_[at->second];
  }
  for (const Parameter& p : program_.parameters) {
    const auto found = std::ranges::find(other.program_.parameters, p.name, &Parameter::name);
    if (found != other.program_.parameters.end() &&
        (other.program_[found->value].offset != program_[p.value].offset ||
         other.program_.storage_of(found->value).name != program_.storage_of(p.value).name))
      refuse(p.name, "the two programs have it at different places");
  }
}

void Session::add_preconditions(std::size_t step) {
  const Step& of = program_.steps[step];
  Precondition all{step, calls_[step], {}, {}};
  bool any = false;
  for (const ClauseInfo& clause : of.op->clauses) {
    if (clause.kind != ClauseKind::requires_clause) continue;
    any = true;
    for (const int t : clause.reads) {
      const Value v = of.tensors[static_cast<std::size_t>(t)];
      const std::int32_t storage = program_[v].storage;
      const Kind kind = program_.storage_of(v).kind;
      if (kind == Kind::temporary)
        throw InputError(describe(of), fmt::format("{} reads {}, which a step computes", clause.id, program_[v].name),
                         "make it an input of the program");
      all.lasts = all.lasts && (kind == Kind::input || kind == Kind::constant);
      Tensor& tensor = all.call.tensors[static_cast<std::size_t>(t)];
      if (std::ranges::find(all.storages, storage) == all.storages.end()) all.storages.push_back(storage);
      if (device_.host_visible() || tensor.data == nullptr ||
          tensor.data != calls_[step].tensors[static_cast<std::size_t>(t)].data)
        continue;  // read as it is, or copied already
      const auto bytes = static_cast<std::size_t>(View<const float>(nullptr, tensor.shape, tensor.strides).extent()) *
                         size_of(tensor.dtype);
      all.copies.push_back({storage, static_cast<const std::byte*>(tensor.data), std::vector<std::byte>(bytes)});
      tensor.data = all.copies.back().bytes.data();
    }
  }
  if (!any) return;
  all.repeats = std::ranges::any_of(
      preconditions_, [&](const Precondition& p) { return !p.repeats && repeats(of, program_.steps[p.step]); });
  all.due = !all.repeats;
  preconditions_.push_back(std::move(all));
}

bool Session::repeats(const Step& step, const Step& earlier) const {
  if (step.op != earlier.op || step.dims != earlier.dims || step.params != earlier.params) return false;
  const auto same = [&](int t) {
    const ValueInfo &a = program_[step.tensors[static_cast<std::size_t>(t)]],
                    &b = program_[earlier.tensors[static_cast<std::size_t>(t)]];
    return a.storage == b.storage && a.offset == b.offset && a.shape == b.shape && a.strides == b.strides;
  };
  return std::ranges::all_of(step.op->clauses, [&](const ClauseInfo& clause) {
    return clause.kind != ClauseKind::requires_clause || std::ranges::all_of(clause.reads, same);
  });
}

Tensor Session::tensor(Value v) const {
  const ValueInfo& info = program_[v];
  const Storage& storage = program_.storages[static_cast<std::size_t>(info.storage)];
  void* data = info.shape.size() == 0 ? nullptr
                                      : slots_[slot(static_cast<std::size_t>(info.storage))] +
                                            static_cast<std::size_t>(info.offset) * size_of(storage.dtype);
  return {storage.dtype, data, info.shape, info.strides};
}

void Session::expect_readable(Value v, std::size_t bytes) const {
  const ValueInfo& info = program_[v];
  const Storage& storage = program_.storages[static_cast<std::size_t>(info.storage)];
  const std::size_t wanted = static_cast<std::size_t>(info.shape.size()) * size_of(storage.dtype);
  if (bytes != wanted)
    throw InputError(info.name, fmt::format("it has {} bytes, and {} were given", wanted, bytes),
                     fmt::format("give {} elements of {}", to_string(info.shape), name(storage.dtype)));
  if (!View<const float>(nullptr, info.shape, info.strides).contiguous())
    throw InputError(info.name, "it has gaps between its rows", "set or get the value that it is a view of");
  if (last_user_[slot(static_cast<std::size_t>(info.storage))] != info.storage)
    throw InputError(info.name, "its memory serves other values by the end of a run",
                     "make it an output of the program");
}

void Session::expect_type(Value v, DType dtype) const {
  const DType own = program_.storage_of(v).dtype;
  const bool converts = dtype == DType::f32 && is_floating(own);  // from 16 bits, and to them
  if (own != dtype && !converts)
    throw InputError(program_[v].name, fmt::format("its elements are {}, not {}", name(own), name(dtype)),
                     fmt::format("set or get elements of {}", name(own)));
}

void Session::expect_inputs() const {
  if (unset_.empty()) return;
  const auto& [storage, stretches] = *unset_.begin();
  const Storage& of = program_.storages[static_cast<std::size_t>(storage)];
  throw InputError(of.name,
                   stretches.front().end - stretches.front().begin == of.elements
                       ? "this input was never set"
                       : fmt::format("elements {} to {} of this input were never set", stretches.front().begin,
                                     stretches.front().end - 1),
                   "set every input before the run");
}

void Session::note_set(Value v) {
  const auto unset = unset_.find(program_[v].storage);
  if (unset == unset_.end()) return;
  const Index begin = program_[v].offset, end = begin + program_[v].shape.size();
  std::vector<Stretch> left;
  for (const Stretch& s : unset->second) {
    if (s.begin < std::min(s.end, begin)) left.push_back({s.begin, std::min(s.end, begin)});
    if (std::max(s.begin, end) < s.end) left.push_back({std::max(s.begin, end), s.end});
  }
  if (left.empty()) unset_.erase(unset);
  else unset->second = std::move(left);
}

void Session::note_writes() {
  for (std::size_t i = 0; i < changes_.size(); ++i) *changes_[i] += is_written_[i];
}

void Session::set(Value v, std::span<const std::byte> bytes) {
  const Turn turn(turn_);
  expect_readable(v, bytes.size());
  if (program_.storage_of(v).kind == Kind::temporary || program_.storage_of(v).kind == Kind::constant)
    throw InputError(program_[v].name, "steps make it, or it is constant",
                     "set inputs, parameters, states and gradients");
  if (!bytes.empty()) device_.upload(tensor(v).data, bytes.data(), bytes.size());
  note_set(v);
  ++*changes_[static_cast<std::size_t>(program_[v].storage)];
  const std::int32_t storage = program_[v].storage;
  for (Precondition& p : preconditions_) {
    if (p.repeats) continue;
    p.due = p.due || std::ranges::find(p.storages, storage) != p.storages.end();
    for (Precondition::Copy& copy : p.copies) {
      if (copy.storage != storage) continue;
      const std::byte* const begin = static_cast<const std::byte*>(tensor(v).data);
      copy.current = program_.storage_of(v).kind == Kind::input && begin <= copy.device &&
                     copy.device + copy.bytes.size() <= begin + bytes.size();
      if (copy.current) std::copy_n(bytes.begin() + (copy.device - begin), copy.bytes.size(), copy.bytes.begin());
    }
  }
}

void Session::get(Value v, std::span<std::byte> bytes) {
  const Turn turn(turn_);
  expect_readable(v, bytes.size());
  if (!bytes.empty()) device_.download(bytes.data(), tensor(v).data, bytes.size());
}

void Session::set(Value v, std::span<const float> elements) {
  expect_type<float>(v);
  const DType dtype = program_.storage_of(v).dtype;
  if (dtype == DType::f32) return set(v, std::as_bytes(elements));
  std::vector<std::uint16_t> rounded(elements.size());
  std::ranges::transform(elements, rounded.begin(),
                         [&](float x) { return dtype == DType::f16 ? to_half(x).bits : to_bfloat16(x).bits; });
  set(v, std::as_bytes(std::span(rounded)));
}

void Session::get(Value v, std::span<float> elements) {
  expect_type<float>(v);
  const DType dtype = program_.storage_of(v).dtype;
  if (dtype == DType::f32) return get(v, std::as_writable_bytes(elements));
  // They come to lie in the second half of their room, each of them behind those that are already widened.
  const std::span<std::byte> narrow = std::as_writable_bytes(elements).last(2 * elements.size());
  get(v, narrow);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, narrow.data() + 2 * i, sizeof bits);
    elements[i] = dtype == DType::f16 ? widen(Half{bits}) : widen(BFloat16{bits});
  }
}

void Session::clear_gradients() {
  const Turn turn(turn_);
  for (std::size_t i = 0; i < program_.storages.size(); ++i)
    if (program_.storages[i].kind == Kind::gradient) clear(slot(i)), ++*changes_[i];
}

void Session::clear(std::size_t slot) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  static const std::vector<std::byte> zeros(kPiece);
  const std::size_t bytes = plan_.slot_bytes[slot];
  for (std::size_t at = 0; at < bytes; at += kPiece)
    device_.upload(slots_[slot] + at, zeros.data(), std::min(kPiece, bytes - at));
}

void Session::check(Precondition& p) {
  for (Precondition::Copy& copy : p.copies)
    if (!copy.current && !copy.bytes.empty()) device_.download(copy.bytes.data(), copy.device, copy.bytes.size());
  try {
    program_.steps[p.step].op->check_requires(p.call);
  } catch (const ContractViolation& violation) {
    refuse(violation, p);
  }
  p.due = !p.lasts && !p.repeats;
}

void Session::refuse(const ContractViolation& violation, const Precondition& p) const {
  const Step& step = program_.steps[p.step];
  const auto clause = std::ranges::find(step.op->clauses, violation.clause, &ClauseInfo::id);
  std::string where;
  if (clause != step.op->clauses.end())
    for (const int t : clause->reads) {
      const Value v = step.tensors[static_cast<std::size_t>(t)];
      const Tensor& tensor = p.call.tensors[static_cast<std::size_t>(t)];
      if (tensor.dtype != DType::i32 || !View<const float>(nullptr, tensor.shape, tensor.strides).contiguous())
        continue;
      // The first element that violates it even among zeros, which are in the range of every index, length and
      // position.
      const auto* const given = static_cast<const std::int32_t*>(tensor.data);
      const auto count = static_cast<std::size_t>(tensor.shape.size());
      std::vector<std::int32_t> begin(count);
      Call call = p.call;
      call.tensors[static_cast<std::size_t>(t)].data = begin.data();
      const auto holds = [&](std::size_t first) {
        std::copy_n(given, first, begin.begin());
        std::fill(begin.begin() + static_cast<std::ptrdiff_t>(first), begin.end(), 0);
        try {
          step.op->check_requires(call);
        } catch (const ContractViolation& again) {
          return again.clause != violation.clause;
        }
        return true;
      };
      if (count == 0 || !holds(0) || holds(count)) continue;
      std::size_t good = 0, bad = count;
      while (bad - good > 1) (holds((good + bad) / 2) ? good : bad) = (good + bad) / 2;
      where = fmt::format("; {}[{}] of the value {} is {}: set it anew",
                          step.op->tensors[static_cast<std::size_t>(t)].name, good, program_[v].name, given[good]);
      break;
    }
  throw ContractViolation(violation.op, violation.kind, violation.clause, violation.says,
                          fmt::format("{}, in step {} of {}, {}{}", violation.values, p.step + 1, program_.steps.size(),
                                      describe(step), where));
}

void Session::run(Check check) {
  const Turn turn(turn_);
  expect_inputs();
  if (checking_) return run_unchecked();
  const bool due = check_every_ > 0 && ++runs_ % check_every_ == 0;
  if (check == Check::none && !due) return run_unchecked();
  if (!check_) throw InputError("Check::steps", "nothing checks a run", "give SessionOptions::check");
  struct Flag {
    bool& of;
    ~Flag() { of = false; }
  } const during{checking_ = true};
  check_(*this);
}

void Session::run_unchecked() {
  for (Precondition& p : preconditions_)
    if (p.due) check(p);
  note_writes();
  if (const trace::Scope program("program", [](trace::Span&) {}); program.recording()) return run_in_spans();
  const ScratchScope scratch(scratch_);
  const auto begin = std::chrono::steady_clock::now();
  for (const Piece& piece : pieces_) {
    if (piece.recording) piece.recording->run();
    else
      for (std::size_t s = piece.begin; s < piece.end; ++s) run_step(s);
  }
  device_.synchronize();
  seconds_ = seconds_since(begin);
}

double Session::seconds() const {
  double sum = 0;
  for (const Piece& piece : pieces_) {
    if (!piece.recording) return seconds_;
    sum += piece.recording->seconds();
  }
  return sum;
}

void Session::run_in_spans() {
  const ScratchScope scratch(scratch_);
  for (std::size_t s = 0; s < calls_.size(); ++s) {
    const Step& step = program_.steps[s];
    const trace::Scope span(step.op->name, [&](trace::Span& made) {
      made.attributes = serve::attributes(*step.op, calls_[s], *kernels_[s], device_);
      made.attributes.push_back({"step", step.label});
    });
    run_step(s);
    device_.synchronize();
  }
}

std::vector<double> Session::step_seconds() {
  const Turn turn(turn_);
  const ScratchScope scratch(scratch_);
  note_writes();
  std::vector<double> seconds;
  for (std::size_t s = 0; s < calls_.size(); ++s) {
    const auto step = [&] { run_step(s); };
    const std::unique_ptr<RecordedWork> recording = device_.record(step);
    if (recording) {
      recording->run(), recording->run();  // the first run may load code
      seconds.push_back(recording->seconds());
    } else {
      step();
      const auto begin = std::chrono::steady_clock::now();
      step();
      seconds.push_back(seconds_since(begin));
    }
  }
  return seconds;
}

}  // namespace assay::program
