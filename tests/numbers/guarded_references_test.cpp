// References read and write only their tensors: each tensor is placed directly before, then directly after,
// inaccessible memory.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "falsify/engine/backward_oracle.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/gradient_point.hpp"
#include "falsify/engine/trial.hpp"
#include "own_process.hpp"

namespace assay::numbers::guarded_references_test {
namespace {

using namespace falsify;

enum class GuardPage { behind, before };

/// `size` elements at one end of their own pages.
template <class T>
class Guarded {
 public:
  Guarded(std::size_t size, GuardPage guard_page) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (size * sizeof(T) + page - 1) / page * page;
    length_ = bytes + 2 * page;
    void* mapped = mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    all_ = static_cast<std::byte*>(mapped);
    if (bytes > 0 && mprotect(all_ + page, bytes, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ =
        reinterpret_cast<T*>(guard_page == GuardPage::behind ? all_ + page + bytes - size * sizeof(T) : all_ + page);
  }
  ~Guarded() { munmap(all_, length_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  T* data() const { return data_; }

 private:
  std::byte* all_ = nullptr;
  std::size_t length_ = 0;
  T* data_ = nullptr;
};

/// Runs the reference on a problem's values.
template <class T>
void run_guarded(const OpDescriptor& op, ReferenceFn<T> reference, const Problem& problem, const Case& c,
                 GuardPage guard_page) {
  std::vector<std::unique_ptr<Guarded<T>>> held;
  std::vector<View<T>> views;
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    const Shape shape = op.tensors[t].shape(c.dims);
    held.push_back(std::make_unique<Guarded<T>>(static_cast<std::size_t>(shape.size()), guard_page));
    const std::vector<float>& values = problem.values[t];
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.size()); ++i)
      held.back()->data()[i] = i < values.size() ? T(values[i]) : T(0);
    views.emplace_back(held.back()->data(), shape);
  }
  reference(views, problem.params);
}

class GuardedReferences : public testing::TestWithParam<const OpDescriptor*> {};

TEST_P(GuardedReferences, TouchTheirTensorsOnly) {
  const OpDescriptor& op = *GetParam();
  std::vector<Case> cases;
  for (const Obligation& o : obligations(op.name)) {
    int tried = 0;
    for (std::uint64_t n = 0; n < 40 && tried < 3; ++n) {
      const Case c = draw(op, *o.info, 5, n, {.largest = 24}).value();
      Index elements = 0;
      for (const TensorInfo& t : op.tensors) elements += t.shape(c.dims).size();
      if (elements > 4000) continue;
      ++tried;
      cases.push_back(c);
    }
  }
  EXPECT_FALSE(cases.empty()) << op.name;
  for (const GuardPage guard_page : {GuardPage::behind, GuardPage::before}) {
    const std::string ended = ended_by([&](Place& place) {
      for (const Case& c : cases) {
        place.set(describe(op, c));
        const Problem problem = make_problem(op, c, {}, DType::f32);
        run_guarded<double>(op, oracle(op.name).exact, problem, c, guard_page);
        run_guarded<float>(op, oracle(op.name).mirror, problem, c, guard_page);
        run_guarded<Bounded>(op, oracle(op.name).bounded, problem, c, guard_page);
      }
    });
    EXPECT_EQ(ended, "") << op.name << " reads or writes " << (guard_page == GuardPage::behind ? "behind" : "before")
                         << " a tensor";
  }
}

/// Returns the gradients of a backward reference at a point, with a null tensor for gradient `not_wanted`, or for all
/// if it is -1.
Values<double> guarded_gradients(const GradientPoint& point, const Values<double>& results, int not_wanted,
                                 GuardPage guard_page) {
  const OpDescriptor& op = *point.c.op;
  std::vector<std::unique_ptr<Guarded<double>>> held;
  std::vector<View<double>> views;
  const auto put = [&](const std::vector<double>& values, int tensor) {
    held.push_back(std::make_unique<Guarded<double>>(values.size(), guard_page));
    std::ranges::copy(values, held.back()->data());
    views.emplace_back(held.back()->data(), point.shape(tensor));
  };
  for (std::size_t i = 0; i < point.inputs.size(); ++i) put(point.x[i], point.inputs[i]);
  for (std::size_t i = 0; i < point.saved.size(); ++i) put(results[i], point.saved[i]);
  for (std::size_t i = 0; i < point.outputs.size(); ++i) put(point.w[i], point.outputs[i]);
  const std::size_t first = views.size();
  for (const int t : differentiable(op)) {
    put(std::vector<double>(static_cast<std::size_t>(point.shape(t).size()), 7), t);
    if (t == not_wanted) views.back() = {nullptr, point.shape(t)};
  }
  for (std::size_t i = point.saved.size(); i < point.kept.size(); ++i) put(results[i], point.kept[i]);
  backward_oracle(op.name).exact(views, point.c.params);
  Values<double> gradients;
  for (std::size_t i = 0; i < differentiable(op).size(); ++i) {
    const View<double>& g = views[first + i];
    gradients.emplace_back(g.data(), g.data() == nullptr ? nullptr : g.data() + g.size());
  }
  return gradients;
}

TEST_P(GuardedReferences, GradientsTouchTheirTensorsOnlyAndAreLeftOutOneByOne) {
  const OpDescriptor& op = *GetParam();
  if (op.gradients.empty()) return;
  const std::vector<int> inputs = differentiable(op);
  for (const GuardPage guard_page : {GuardPage::behind, GuardPage::before}) {
    const std::string ended = ended_by([&](Place& place) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        place.set("seed " + std::to_string(seed));
        const GradientCase c = draw_gradient_case(op, inputs.front(), seed);
        const GradientPoint point(c);
        Values<double> results;
        point.forward<double>(oracle(op.name).exact, point.x, &results);
        const Values<double> all = guarded_gradients(point, results, -1, guard_page);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          Values<double> expected = all;
          expected[i].clear();
          if (guarded_gradients(point, results, inputs[i], guard_page) != expected) _exit(1);
        }
      }
    });
    EXPECT_EQ(ended, "")
        << op.name << ": a gradient is written that is not wanted, changes the others, or reads beyond its tensors";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, GuardedReferences, testing::ValuesIn(operations().begin(), operations().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace assay::numbers::guarded_references_test
