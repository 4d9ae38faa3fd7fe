// Compares our CPU kernels with their peers, as whole calls without contract: <kernel>/<dims>.
#include <string>

#include "calls.hpp"
#include "core/q4_k.hpp"
#include "paired.hpp"
#include "runtime/registry.hpp"

namespace assay::bench {
namespace {

using Maker = OwnedCall (*)(std::string_view op, const std::vector<Index>& dims);

OwnedCall product(std::string_view op, const std::vector<Index>& dims) {
  return product_call(op, dims[0], dims[1], dims[2]);
}
OwnedCall matrix_vector(std::string_view, const std::vector<Index>& dims) {
  return OwnedCall(dims, {Shape{dims[0], dims[1]}, Shape{dims[1]}, Shape{dims[0]}});
}
OwnedCall transposition(std::string_view, const std::vector<Index>& dims) {
  return OwnedCall(dims, {Shape{dims[0], dims[1]}, Shape{dims[1], dims[0]}});
}
OwnedCall copy(std::string_view, const std::vector<Index>& dims) {
  return OwnedCall(dims, {Shape{dims[0], dims[1]}, Shape{dims[0], dims[1]}});
}

/// Makes calls of operations on rows: every tensor is [rows, n], a vector of n or of rows, or a head.
OwnedCall rows_call(std::string_view op, const std::vector<Index>& dims) {
  const Shape matrix{dims[0], dims[1]}, vector{dims[1]}, rows{dims[0]};
  if (op == "rmsnorm") return OwnedCall(dims, {matrix, vector, matrix, rows}, {1e-6});
  if (op == "rmsnorm_backward") return OwnedCall(dims, {matrix, vector, rows, matrix, matrix, vector});
  if (op == "softmax") return OwnedCall(dims, {matrix, matrix});
  if (op == "softmax_backward" || op == "silu_mul") return OwnedCall(dims, {matrix, matrix, matrix});
  return OwnedCall(dims, {matrix, matrix, matrix, matrix, matrix});  // silu_mul_backward
}
/// Makes calls on a matrix [n, k] in NF4 codes, k a multiple of 64: dims n, k of a codec, m, n, k of a product.
OwnedCall nf4_call(std::string_view op, const std::vector<Index>& dims) {
  const bool product = dims.size() == 3;
  const Index n = dims[product ? 1 : 0], k = dims[product ? 2 : 1];
  const Shape words{n, k / 8}, absmax{n, k / 64}, dense{n, k};
  const std::size_t codes = op == "nf4_dequantize" ? 0 : 1;
  OwnedCall call = op == "nf4_dequantize" ? OwnedCall(dims, {words, absmax, dense})
                   : op == "nf4_quantize" ? OwnedCall(dims, {dense, words, absmax})
                   : op == "nf4_matmul"
                       ? OwnedCall(dims, {Shape{dims[0], n}, words, absmax, Shape{dims[0], k}})
                       : OwnedCall({dims[0], k, n}, {Shape{dims[0], k}, words, absmax, Shape{dims[0], n}});
  call.pack(codes, Shape{n, k / 2});
  return call;
}
/// Makes calls on scales [n, b] and their codes of 8 bits.
OwnedCall absmax_call(std::string_view op, const std::vector<Index>& dims) {
  const Index count = dims[0] * dims[1], groups = (count + 255) / 256;
  const Shape scales{dims[0], dims[1]}, words{groups * 64}, each{groups}, one{1};
  const bool decoded = op == "nf4_absmax_dequantize";
  OwnedCall call = decoded ? OwnedCall(dims, {words, each, one, scales}) : OwnedCall(dims, {scales, words, each, one});
  call.pack(decoded ? 0 : 1, Shape{groups * 256});
  if (!decoded) call.magnitudes(0);
  return call;
}
OwnedCall rotation(std::string_view, const std::vector<Index>& dims) {
  const Shape heads{dims[0], dims[1], dims[2]};
  OwnedCall call(dims, {heads, Shape{dims[0]}, heads}, {10000, 0, 0});
  call.integers(1, 4096);
  return call;
}

/// Makes a decoding step against caches with one place left.
OwnedCall decoding(std::string_view, const std::vector<Index>& dims) {
  const Shape queries{dims[0], dims[3], dims[4]}, row{dims[0], dims[2], dims[4]},
      cache{dims[0], dims[1], dims[2], dims[4]};
  OwnedCall call(dims, {queries, row, row, Shape{dims[0]}, cache, cache, queries}, {0.125});
  call.integers(3, static_cast<std::int32_t>(dims[1] - 1));
  return call;
}

/// Makes calls of linear layers and adapters: dims are s, in, out, r; out, in, r for merges.
OwnedCall layer(std::string_view op, const std::vector<Index>& dims) {
  if (op == "lora_merge" || op == "lora_unmerge") {
    const Shape weight{dims[0], dims[1]};
    return OwnedCall(dims, {weight, Shape{dims[2], dims[1]}, Shape{dims[0], dims[2]}, weight}, {16});
  }
  const Index s = dims[0], in = dims[1], out = dims[2], r = dims[3];
  const Shape x{s, in}, weight{out, in}, bias{1, out}, a{r, in}, b{out, r}, y{s, out}, t{s, r};
  if (op == "linear") return OwnedCall({s, in, out, 1}, {x, weight, bias, y});
  if (op == "lora_linear") return OwnedCall({s, in, out, r, 1}, {x, weight, bias, a, b, y, t}, {16});
  return OwnedCall(dims, {x, weight, a, b, t, y, x, a, b}, {16});  // lora_linear_backward
}

/// Makes calls on super-blocks with arbitrary codes and scales, d and dmin 2^-8; rows of dims[1] values.
OwnedCall super_blocks(std::string_view op, const std::vector<Index>& dims) {
  const Shape shape{dims.size() == 3 ? dims[2] : dims[0], q4_k::row_bytes(dims[1])}, matrix{dims[0], dims[1]};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(shape.size()));
  std::mt19937 random(2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = i % q4_k::kBytes < 4 ? (i % 2 ? 0x1c : 0) : static_cast<std::uint8_t>(random());
  if (op == "q4_k_gemv")
    return std::move(OwnedCall(dims, {Shape{dims[1]}, Shape{dims[0]}}).with_bytes(0, shape, bytes));
  if (op == "q4_k_matmul_nt")
    return std::move(OwnedCall(dims, {matrix, Shape{dims[0], dims[2]}}).with_bytes(1, shape, bytes));
  return std::move(OwnedCall(dims, {matrix}).with_bytes(op == "q4_k_quantize" ? 1 : 0, shape, bytes));
}

struct Comparison {
  std::string kernel;  ///< kernel id
  std::string peer;
  Maker make = nullptr;
  double required = 0;  ///< minimum of the ratio peer / kernel; 0: reported only
};

/// `seconds`: approximate time of one round, which sets the number of rounds.
void add(const Comparison& what, const std::vector<Index>& dims, double seconds) {
  std::string name = what.kernel;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    name += i == 0 ? '/' : 'x';
    name += std::to_string(dims[i]);
  }
  const auto run = [what, dims](benchmark::State& state) {
    const Kernel& ours = kernel(what.kernel);
    const Kernel& theirs = kernel(what.peer);
    const OwnedCall call = what.make(ours.op, dims);
    Device& cpu = device(Backend::cpu);
    const Rounds rounds = measure(
        state, {{"kernel", [&] { ours.run(call.get(), cpu); }}, {"peer", [&] { theirs.run(call.get(), cpu); }}});
    const double ratio = median_of(rounds, 1, 0, [](double peer, double own) { return peer / own; });
    if (what.required > 0) bar_at_least(state, "ratio", ratio, what.required);
    else state.counters["ratio"] = ratio;
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Iterations(rounds_for(seconds));
}

void add_product(const Comparison& what, Index m, Index k, Index n) {
  const double volume = static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  add(what, {m, k, n}, 2 * 2 * volume / 100e9);
}

/// Returns the required speedup over OpenBLAS of the default kernel on a product of n³: at least 1.2 at 8³ and 16³, and
/// 0.95 from 32³ on.
double required_of_cube(Index n) { return n == 8 || n == 16 ? 1.2 : n >= 32 ? 0.95 : 0; }

}  // namespace

void register_kernels() {
  for (const std::string op : {"matmul", "matmul_nt", "matmul_tn"}) {
    const std::string cpu = op + "/cpu/";
    const auto add_cube = [&cpu](const char* algorithm, Index n, double required) {
      add_product({cpu + algorithm, cpu + "openblas", &product, required}, n, n, n);
    };
    for (Index n : {8, 16, 17, 24, 32, 33, 48, 64, 65, 80, 96, 100, 127, 128, 192, 256, 257, 384, 512, 768, 1024}) {
      add_cube("dispatch", n, required_of_cube(n));
      add_cube("highway_tiled", n, 0);
      if (n <= 128) add_cube("naive", n, 0);
    }
    const Index skinny[][3] = {{1, 256, 256}, {4, 256, 256},  {256, 256, 1},  {256, 256, 4},
                               {256, 4, 256}, {33, 1000, 33}, {17, 512, 512}, {512, 512, 17}};
    for (const auto& [m, k, n] : skinny) add_product({cpu + "dispatch", cpu + "openblas", &product, 0}, m, k, n);
  }
  // Compares with naive kernels at the size of a layer; mirror_bench.cpp sets the requirements against the scalar
  // mirror.
  for (const std::string op :
       {"rmsnorm", "rmsnorm_backward", "softmax", "softmax_backward", "silu_mul", "silu_mul_backward"})
    add({op + "/cpu/highway", op + "/cpu/naive", &rows_call, 0}, {512, 2048}, 5e-3);
  for (const std::string op : {"rope", "rope_backward"})
    add({op + "/cpu/highway", op + "/cpu/naive", &rotation, 0}, {512, 16, 128}, 5e-2);
  for (const Index kv_heads : {4, 28})
    add({"attention_decode/cpu/highway", "attention_decode/cpu/naive", &decoding, 0}, {1, 2048, kv_heads, 28, 128},
        5e-2);
  for (const std::string op : {"linear", "lora_linear", "lora_linear_backward"}) {
    add({op + "/cpu/dispatch", op + "/cpu/naive", &layer, 0}, {128, 896, 896, 16}, 5e-2);
    add({op + "/cpu/dispatch", op + "/cpu/naive", &layer, 0}, {33, 257, 129, 7}, 2e-3);
  }
  for (const std::string op : {"lora_merge", "lora_unmerge"})
    add({op + "/cpu/dispatch", op + "/cpu/naive", &layer, 0}, {896, 896, 16}, 1e-2);
  for (const std::string op : {"nf4_quantize", "nf4_dequantize"})
    add({op + "/cpu/highway", op + "/cpu/naive", &nf4_call, 0}, {1024, 1024}, 5e-3);
  for (const std::string op : {"nf4_absmax_quantize", "nf4_absmax_dequantize"})
    add({op + "/cpu/highway", op + "/cpu/naive", &absmax_call, 0}, {1024, 76}, 1e-3);
  for (const std::string op : {"nf4_matmul_nt", "nf4_matmul"})
    for (const Index m : {1, 32}) add({op + "/cpu/highway", op + "/cpu/naive", &nf4_call, 0}, {m, 512, 1024}, 1e-2);
  for (const std::string op : {"q4_k_dequantize", "q4_k_gemv", "q4_k_quantize"})
    add({op + "/cpu/highway", op + "/cpu/naive", &super_blocks, 0}, {512, 4096}, 5e-2);
  for (const Index m : {2, 32})
    add({"q4_k_matmul_nt/cpu/highway", "q4_k_matmul_nt/cpu/naive", &super_blocks, 0}, {m, 4096, 512}, 5e-2);
  const Index matrices[][2] = {{16, 16}, {100, 100}, {256, 256}, {1000, 1000}, {1024, 1024}, {33, 4096}, {4096, 33}};
  for (const auto& [m, n] : matrices) {
    const double seconds = static_cast<double>(m * n) / 1e9;
    add({"gemv/cpu/dispatch", "gemv/cpu/openblas", &matrix_vector, 0}, {m, n}, seconds);
    add({"gemv/cpu/highway", "gemv/cpu/openblas", &matrix_vector, 0}, {m, n}, seconds);
    add({"transpose/cpu/blocked32", "transpose/cpu/naive", &transposition, 0}, {m, n}, seconds);
    add({"tensor_layout/cpu/rows", "tensor_layout/cpu/naive", &copy, 0}, {m, n}, seconds);
  }
}

}  // namespace assay::bench
