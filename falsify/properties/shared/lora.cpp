#include "falsify/properties/shared/lora.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/products.hpp"

namespace assay::falsify {

float whole_scale(Problem& problem, Index r, int least, Random& random) {
  const float scale = std::ldexp(1.0f, static_cast<int>(random.between(least, 1)));
  problem.params[0] = static_cast<double>(r) * scale;
  return scale;
}

std::vector<Index> two_large(const Trial& trial, Index first, Index second) {
  std::vector<Index> dims = trial.the_case().dims;
  for (Index d = 0; d < static_cast<Index>(dims.size()); ++d)
    if (Index& dim = dims[static_cast<std::size_t>(d)]; d != first && d != second && dim > 8) dim = dim % 8 + 1;
  return dims;
}

int bits_for(const Trial& trial, Index terms) {
  int bits = std::min(12, significand_bits(trial.kernel().arithmetic.inputs));
  while (bits > 2 && terms << bits > Index{1} << 24) --bits;
  return bits;
}

int bits_for(const Trial& trial, Index terms, DType stored) {
  const int own = stored == DType::f16 ? 11 : stored == DType::bf16 ? 8 : 24;
  return std::min(bits_for(trial, terms), own);
}

int whole_limit(DType stored) { return stored == DType::f16 ? 1 << 11 : stored == DType::bf16 ? 1 << 8 : 1 << 24; }

void fill_wide(std::vector<float>& values, int bits, Random& random) {
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  for (float& x : values)
    x = static_cast<float>(random.either_sign(static_cast<double>((top + random.below(top)) | 1)));
}

void fill_signs(std::vector<float>& values, Random& random) {
  for (float& x : values) x = static_cast<float>(random.below(3)) - 1.0f;
}

Matrix one_in_each_row(Index rows, Index columns, Random& random) {
  Matrix m(rows, columns);
  if (columns > 0)
    for (Index i = 0; i < rows; ++i) {
      const Index chosen = random.between(0, columns - 1);
      m(i, chosen) = static_cast<float>(random.sign());
    }
  return m;
}

Matrix few_in_each_row(Index rows, Index columns, int few, Random& random) {
  Matrix m(rows, columns);
  for (Index i = 0; i < rows && columns > 0; ++i)
    for (int n = 0; n < few; ++n) m(i, random.between(0, columns - 1)) = static_cast<float>(random.sign());
  return m;
}

void fill_below(Matrix& m, int limit, bool keep_zeros, Random& random) {
  for (float& v : m.values)
    if (!keep_zeros || v != 0)
      v = static_cast<float>(random.either_sign(static_cast<double>(random.between(keep_zeros ? 1 : 0, limit - 1))));
}

Outcome within(std::string_view tensor, const Shape& shape, const std::vector<float>& got,
               const std::vector<float>& want, std::vector<double> bound) {
  return compare_within(tensor, shape, widened(got), widened(want), bound);
}

namespace {

/// Makes a call of lora_merge or lora_unmerge.
Problem adapter_problem(const OpDescriptor& op, const Matrix& first, const Matrix& a, const Matrix& b, double alpha) {
  return {&op, {first.rows, first.columns, a.rows}, {alpha}, {first.values, a.values, b.values, {}}};
}

struct Parts {
  Matrix first, a, b;
  explicit Parts(const Problem& p) : first(p, 0), a(p, 1), b(p, 2) {}
};

std::string_view result_name(const Trial& trial) { return trial.op().tensors[3].name; }

std::vector<double> own_bounds(const Trial& trial, const Problem& problem) {
  return bounds_of(trial.oracle(problem)[0]);
}

/// Makes integers whose sums are exact; one of the three tensors uses all bits.
Problem exact_adapter(Trial& trial, Problem problem, int least_scale) {
  Random random = trial.random("exact");
  whole_scale(problem, problem.dims[2], least_scale, random);
  const auto wide = static_cast<std::size_t>(random.below(3));
  // Sums have the first term and 2 r products, in units of 1/2.
  for (std::size_t t = 0; t < 3; ++t)
    if (t == wide) fill_wide(problem.values[t], bits_for(trial, 2 + 2 * problem.dims[2]), random);
    else fill_signs(problem.values[t], random);
  return problem;
}

}  // namespace

Outcome adapter_exact(Trial& trial) {
  if (!trial.the_case().values.empty())
    return trial.against_oracle(Tier::worst_case, trial.problem(), trial.run(trial.problem()));
  const Problem problem = exact_adapter(trial, trial.problem(), -1);
  return trial.against_oracle(trial.exact_tier(), problem, trial.run(problem));
}

Outcome adapter_row_slices(Trial& trial) {
  if (!drawn_exact(trial)) return rows_alone(trial, trial.problem(), false);
  return rows_alone(trial, exact_adapter(trial, trial.problem(), -1), true);
}

Outcome adapter_large(Trial& trial, float sign) {
  if (!drawn_exact(trial))
    return Outcome::not_applicable("the inputs are not drawn as integers whose sums of products are exact");
  const Problem problem = exact_adapter(trial, trial.problem(two_large(trial, 0, 1)), 0);
  const Run run = trial.run(problem);
  const Parts p(problem);
  const float scale = sign * static_cast<float>(problem.params[0] / static_cast<double>(p.a.rows));
  const Matrix left = beside(scaled(p.b, scale), identity_matrix(p.first.rows)), right = stacked(p.a, p.first);
  return exact_product(result_name(trial), 2, left.view(), right.view(), {run.outputs[0].data(), problem.shape(3)});
}

Outcome adapter_scaling(Trial& trial) {
  const Problem plain = trial.problem();
  Problem scaled = plain;
  const int exponent = static_cast<int>(trial.random("scaling").between(-6, 6));
  for (std::size_t t : {0, 2})
    for (float& v : scaled.values[t]) v = std::ldexp(v, exponent);
  return trial.scales(plain, scaled, {exponent});
}

Outcome adapter_zero_b(Trial& trial) {
  Problem problem = trial.problem();
  std::ranges::fill(problem.values[trial.random("factor").chance(0.5) ? 1 : 2], 0.0f);
  const Run run = trial.run(problem);
  if (trial.exact_tier() != Tier::exact) return trial.against_oracle(Tier::worst_case, problem, run);
  return within(result_name(trial), problem.shape(3), run.outputs[0], problem.values[0],
                std::vector<double>(run.outputs[0].size()));
}

Outcome adapter_round_trip(Trial& trial) {
  const Problem there = trial.problem();
  const Run run = trial.run(there);
  const bool merging = trial.op().name == "lora_merge";
  Problem back = there;
  back.op = &operation(merging ? "lora_unmerge" : "lora_merge");
  back.values[0] = run.outputs[0];
  const std::vector<Bounded> got = trial.oracle(back)[0];
  std::vector<double> values, bound = own_bounds(trial, there);
  for (std::size_t i = 0; i < got.size(); ++i) {
    values.push_back(got[i].value);
    bound[i] += got[i].may_overflow ? INFINITY : got[i].error;
  }
  return compare_within(trial.op().tensors[0].name, there.shape(0), values, widened(there.values[0]), bound);
}

Outcome adapter_rank_doubled(Trial& trial) {
  const Problem once = trial.problem();
  const Parts p(once);
  const Problem twice = adapter_problem(trial.op(), p.first, stacked(p.a, p.a), beside(p.b, p.b), once.params[0]);
  const Run one = trial.run(once), two = trial.run(twice);
  std::vector<double> bound = own_bounds(trial, once);
  add(bound, own_bounds(trial, twice));
  return within(result_name(trial), once.shape(3), two.outputs[0], one.outputs[0], bound);
}

Outcome adapter_ranks_add(Trial& trial) {
  Problem both = trial.problem();
  Random random = trial.random("split");
  const float scale = whole_scale(both, both.dims[2], -1, random);
  const Parts p(both);
  if (p.a.rows < 2) return trial.against_oracle(Tier::worst_case, both, trial.run(both));
  const Index cut = random.between(1, p.a.rows - 1);
  const Problem one = adapter_problem(trial.op(), p.first, rows_of(p.a, 0, cut), columns_of(p.b, 0, cut),
                                      static_cast<double>(cut) * scale);
  const Run after_one = trial.run(one);
  const Matrix between(p.first.rows, p.first.columns, after_one.outputs[0]);
  const Problem other = adapter_problem(trial.op(), between, rows_of(p.a, cut, p.a.rows),
                                        columns_of(p.b, cut, p.a.rows), static_cast<double>(p.a.rows - cut) * scale);
  std::vector<double> bound = own_bounds(trial, both);
  add(bound, own_bounds(trial, one));
  add(bound, own_bounds(trial, other));
  const Run after_other = trial.run(other), at_once = trial.run(both);
  return within(result_name(trial), both.shape(3), after_other.outputs[0], at_once.outputs[0], bound);
}

Outcome adapter_transposition(Trial& trial) {
  const Problem plain = trial.problem();
  const Parts p(plain);
  const Problem mirrored =
      adapter_problem(trial.op(), transposed(p.first), transposed(p.b), transposed(p.a), plain.params[0]);
  const Run run = trial.run(plain), mirror = trial.run(mirrored);
  std::vector<double> bound = own_bounds(trial, mirrored);
  for (double& b : bound) b *= 2;
  return within(result_name(trial), mirrored.shape(3), mirror.outputs[0],
                transposed(Matrix(p.first.rows, p.first.columns, run.outputs[0])).values, bound);
}

}  // namespace assay::falsify
