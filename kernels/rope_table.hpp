// Calls of rope_table and of its gradient, which differ in the sign of the sines alone, for kernels on every back end.
#pragma once

#include "core/view.hpp"

namespace assay {

/// A call of rope_table, or of its gradient if `inverse` is set.
struct RopeTableCall {
  Index rows, heads, d;
  bool interleaved, inverse;
  View<const float> cosines, sines;
  View<const std::int32_t> positions;
  StorageView from, to;
};

/// Builds the call from RopeTableArgs or RopeTableBackwardArgs.
template <class Args>
RopeTableCall rope_table_call(const Args& args) {
  RopeTableCall r{args.rows,      args.heads, args.d, args.interleaved != 0, false, args.cosines, args.sines,
                  args.positions, {},         {}};
  if constexpr (requires { args.dx; }) r.from = args.dy, r.to = args.dx, r.inverse = true;
  else r.from = args.x, r.to = args.y;
  return r;
}

/// Returns the distance between rows of a table; 0 if it has one row, whose stride is meaningless.
inline Index table_step(const View<const float>& table) { return table.dim(0) > 1 ? table.stride(0) : 0; }

}  // namespace assay
