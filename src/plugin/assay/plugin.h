/* Assay's interface for foreign kernels: a C function in a shared library, called with DLPack tensors.
 *
 *     int my_matmul(const assay_call* call);                      // exported, C linkage
 *     const char* my_matmul_declares(void);                       // optional: "accumulator=f32,inputs=tf32", or ""
 *
 *     assay falsify --lib ./libmine.so --symbol my_matmul --contract matmul
 *
 * The kernel reads the input tensors, writes every element of the output tensors, and returns one of assay_status.
 * `assay explain OP` prints the dims, params and tensors of a contract in their order. Functions with other
 * arguments need no code: a shim describes them (`assay falsify --shim FILE`).
 *
 * What a kernel may rely on
 *   order      dims, params and tensors are in the contract's order, each array with an array of names.
 *   shapes     are the contract's for these dims. A dim may be 0 where the contract allows it; a tensor without elements
 *              may have any address, NULL included.
 *   strides    are always given, in elements, never negative. Elements of a tensor do not overlap. If the contract says
 *              that rows are dense, the innermost stride is 1 and rows may be padded: a kernel that needs dense tensors
 *              refuses others (ASSAY_REFUSED). Strides of extents of 1 are arbitrary.
 *   offset     `byte_offset` is 0: `data` is the address of element (0, ..., 0).
 *   alignment  that of one element; 4 bytes for packed bytes. DLPack's alignment of 256 bytes is not guaranteed.
 *   aliasing   outputs share no memory with inputs or each other, unless the contract allows it. Memory outside
 *              the tensors, gaps between padded rows included, must not be written; reading it may end the process.
 *   types      f32, f16 (kDLFloat), bf16 (kDLBfloat), i32 (kDLInt), u8 (kDLUInt), one lane.
 *   lifetime   everything the call points to lives until the kernel returns, and no longer.
 *   device     kDLCPU: host memory, `stream` is NULL. kDLCUDA: device memory, `stream` is a cudaStream_t; the kernel
 *              may return with work pending on it, the caller waits. For a .cu file compiled for the CPU
 *              (`backend=cuda-host`) the host acts as the device: kDLCUDA, host memory, `stream` is NULL.
 *   threads    one call at a time. A kernel may use threads; none may touch the tensors after the kernel has returned.
 *   process    calls run in a separate process, many in a row, in any order of sizes, with a limit on time and memory.
 *              State kept between calls must not change results. The kernel restores the floating-point environment
 *              (rounding mode, flush to zero), and no exception leaves it.
 *
 * Error bounds are derived from the arithmetic that a kernel declares, by its `_declares` function or by --declare. The
 * default is plain float32 with the C library's functions. `assay explain OP` explains the keys:
 *   inputs, input_rounding, accumulator, accumulation, block, flush_to_zero, fma, functions, online_tile,
 *   lazy_rescaling, merges_parts, frequencies, loses, storage, deterministic, batch_invariant, backend, rejects
 * `rejects=ids+lengths` names tensors of integers, params and dims whose forbidden values the kernel refuses
 * (ASSAY_REFUSED or ASSAY_FAILED) without touching memory. Such a kernel is called with forbidden values, too;
 * otherwise the contract admits every call. */
#ifndef ASSAY_PLUGIN_H_
#define ASSAY_PLUGIN_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

/* DLPack 0.5 introduced the name DLDevice. The layout of DLTensor has not changed since, 1.x included. */
#if !defined(DLPACK_MAJOR_VERSION) && (!defined(DLPACK_VERSION) || DLPACK_VERSION < 50)
#error "assay/plugin.h needs DLPack 0.5 or newer"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_PLUGIN_VERSION 1

typedef enum {
  ASSAY_DONE = 0,    /* the outputs are written */
  ASSAY_REFUSED = 1, /* "I cannot take this call because ...": counted and shown, no failure */
  ASSAY_FAILED = 2   /* an error, as any other value: the kernel counts as wrong */
} assay_status;

/* One call. Later versions only add members at the end: `version` tells which exist. */
typedef struct assay_call {
  uint32_t version; /* ASSAY_PLUGIN_VERSION of the caller */
  int32_t dim_count, param_count, tensor_count;
  const char* op;                  /* name of the contract */
  const int64_t* dims;             /* [dim_count] */
  const char* const* dim_names;    /* [dim_count] */
  const double* params;            /* [param_count]; float32 numbers, integers, choices */
  const char* const* param_names;  /* [param_count] */
  const DLTensor* tensors;         /* [tensor_count]; inputs and outputs */
  const char* const* tensor_names; /* [tensor_count] */
  DLDevice device;                 /* of all tensors */
  void* stream;                    /* cudaStream_t on CUDA, NULL on the host */
  char* message;                   /* a kernel that does not return ASSAY_DONE says why: text, ended by 0 */
  size_t message_bytes;            /* room in `message`, the 0 included */
} assay_call;

typedef int (*assay_kernel)(const assay_call* call);
typedef const char* (*assay_declares)(void);

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_PLUGIN_H_ */
