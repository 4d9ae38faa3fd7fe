// The search for races on shared memory (races.cpp). Internal to the execution model.
#pragma once

namespace assay::cuda_host {

/// Counts the store that the running thread has announced. Called before the thread waits or ends.
void flush_store();
/// All threads of the block have met.
void begin_phase();
/// These lanes of the running warp have met.
void meet(unsigned mask);
/// A block begins, or has ended, which forgets its arrays.
void begin_tracking();
void end_tracking();

}  // namespace assay::cuda_host
