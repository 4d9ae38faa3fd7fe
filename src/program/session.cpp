#include "program/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "contract/enforce.hpp"
#include "core/errors.hpp"
#include "serve/reservation.hpp"
#include "serve/select.hpp"
#include "serve/serve.hpp"

namespace assay::program {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Session::Session(Program program, Device& device, SessionOptions options)
    : program_(std::move(program)), device_(device), plan_(program::plan(program_, options.reuse)) {
  {
    const Reservation reservation(device_, plan_.bytes);  // refuses all of it, or none
    for (const std::size_t bytes : plan_.slot_bytes) slots_.push_back(device_.allocate(bytes));
  }
  for (const Buffer& slot : slots_) clear(slot);
  last_user_.assign(slots_.size(), -1);
  for (std::size_t i = 0; i < program_.storages.size(); ++i)
    if (program_.storages[i].kind != Kind::temporary)
      last_user_[static_cast<std::size_t>(plan_.slot_of[i])] = static_cast<std::int32_t>(i);
  for (const Step& step : program_.steps) {
    expect_set_by_host(step);
    Call call{step.dims, step.params, {}};
    for (const Value v : step.tensors) {
      call.tensors.push_back(tensor(v));
      const ValueInfo& info = program_[v];
      last_user_[static_cast<std::size_t>(plan_.slot_of[static_cast<std::size_t>(info.storage)])] = info.storage;
    }
    const Kernel* chosen = options.choose ? options.choose(step) : nullptr;
    try {
      kernels_.push_back(chosen != nullptr ? chosen : &select_kernel(step.op->name, device_.backend(), call));
    } catch (const Unavailable& e) {
      throw Unavailable(fmt::format("{} for {}", e.subject, describe(step)), e.why);
    }
    device_.prepare(*kernels_.back(), call);
    calls_.push_back(std::move(call));
  }
  recording_ = device_.record([&] {
    for (std::size_t s = 0; s < calls_.size(); ++s) kernels_[s]->run(calls_[s], device_);
  });
}

/// Preconditions are evaluated before a run: what they read must be there by then.
void Session::expect_set_by_host(const Step& step) const {
  for (const ClauseInfo& clause : step.op->clauses)
    for (const int t : clause.reads)
      if (const Value v = step.tensors[static_cast<std::size_t>(t)];
          clause.kind == ClauseKind::requires_clause && program_.storage_of(v).kind == Kind::temporary)
        throw InputError(describe(step), fmt::format("{} reads {}, which a step computes", clause.id, program_[v].name),
                         "make it an input of the program");
}

Tensor Session::tensor(Value v) const {
  const ValueInfo& info = program_[v];
  const Storage& storage = program_.storages[static_cast<std::size_t>(info.storage)];
  const Buffer& slot = slots_[static_cast<std::size_t>(plan_.slot_of[static_cast<std::size_t>(info.storage)])];
  void* data = info.shape.size() == 0 ? nullptr
                                      : static_cast<std::byte*>(slot.address()) +
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
  if (last_user_[static_cast<std::size_t>(plan_.slot_of[static_cast<std::size_t>(info.storage)])] != info.storage)
    throw InputError(info.name, "its memory serves other values by the end of a run",
                     "make it an output of the program");
}

void Session::set(Value v, std::span<const std::byte> bytes) {
  expect_readable(v, bytes.size());
  if (program_.storage_of(v).kind == Kind::temporary || program_.storage_of(v).kind == Kind::constant)
    throw InputError(program_[v].name, "steps make it, or it is constant",
                     "set inputs, parameters, states and gradients");
  if (!bytes.empty()) device_.upload(tensor(v).data, bytes.data(), bytes.size());
  unchecked_ = true;
}

void Session::get(Value v, std::span<std::byte> bytes) {
  expect_readable(v, bytes.size());
  if (!bytes.empty()) device_.download(bytes.data(), tensor(v).data, bytes.size());
}

void Session::clear_gradients() {
  for (std::size_t i = 0; i < program_.storages.size(); ++i) {
    if (program_.storages[i].kind != Kind::gradient) continue;
    clear(slots_[static_cast<std::size_t>(plan_.slot_of[i])]);
  }
}

void Session::clear(const Buffer& slot) {
  const std::vector<std::byte> zeros(slot.bytes());
  if (!zeros.empty()) device_.upload(slot.address(), zeros.data(), zeros.size());
}

void Session::check() {
  for (std::size_t s = 0; s < calls_.size(); ++s) {
    const OpDescriptor& op = *program_.steps[s].op;
    Call host = calls_[s];
    std::vector<std::vector<std::byte>> copies;
    for (std::size_t t = 0; t < host.tensors.size() && !device_.host_visible(); ++t) {
      const auto reads = [&](const ClauseInfo& clause) {
        return std::ranges::find(clause.reads, static_cast<int>(t)) != clause.reads.end();
      };
      if (std::ranges::none_of(op.clauses, reads)) continue;
      Tensor& tensor = host.tensors[t];
      copies.emplace_back(static_cast<std::size_t>(View<const float>(nullptr, tensor.shape, tensor.strides).extent()) *
                          size_of(tensor.dtype));
      if (copies.back().empty()) continue;
      device_.download(copies.back().data(), tensor.data, copies.back().size());
      tensor.data = copies.back().data();
    }
    op.check_requires(host);
  }
  unchecked_ = false;
}

void Session::run() {
  if (unchecked_) check();
  if (const trace::Scope program("program", [](trace::Span&) {}); program.recording()) return run_in_spans();
  if (recording_) {
    recording_->run();
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t s = 0; s < calls_.size(); ++s) kernels_[s]->run(calls_[s], device_);
  device_.synchronize();
  seconds_ = seconds_since(begin);
}

void Session::run_in_spans() {
  for (std::size_t s = 0; s < calls_.size(); ++s) {
    const Step& step = program_.steps[s];
    const trace::Scope span(step.op->name, [&](trace::Span& made) {
      made.attributes = serve::attributes(*step.op, calls_[s], *kernels_[s], device_);
      made.attributes.push_back({"step", step.label});
    });
    kernels_[s]->run(calls_[s], device_);
    device_.synchronize();
  }
}

std::vector<double> Session::step_seconds() {
  std::vector<double> seconds;
  for (std::size_t s = 0; s < calls_.size(); ++s) {
    const auto step = [&] { kernels_[s]->run(calls_[s], device_); };
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
