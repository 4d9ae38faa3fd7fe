#include "runtime/cuda/cuda_device.hpp"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/registry.hpp"

namespace assay {
namespace {

std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

}  // namespace

/// A captured graph, and the memory that its kernels allocated for themselves.
struct CudaDevice::Recorded final : RecordedWork {
  explicit Recorded(CudaDevice& on) : device(on) {
    device.check("cudaEventCreate", cudaEventCreate(&begin));
    device.check("cudaEventCreate", cudaEventCreate(&end));
  }
  ~Recorded() override {
    if (!device.dead_.empty()) return;  // the context is gone
    if (graph != nullptr) static_cast<void>(cudaGraphExecDestroy(graph));
    for (const cudaEvent_t event : {begin, end}) static_cast<void>(cudaEventDestroy(event));
    for (void* const address : kept) static_cast<void>(cudaFree(address));
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  void run() override {
    device.require_alive();
    device.check("cudaEventRecord", cudaEventRecord(begin, device.stream_));
    device.check("cudaGraphLaunch", cudaGraphLaunch(graph, device.stream_));
    device.check("cudaEventRecord", cudaEventRecord(end, device.stream_));
    device.synchronize();
  }
  double seconds() const override {
    float milliseconds = 0;
    device.check("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, begin, end));
    return 1e-3 * static_cast<double>(milliseconds);
  }

  CudaDevice& device;
  cudaGraphExec_t graph = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  std::vector<void*> kept;
};

CudaDevice::CudaDevice() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0)
    throw Unavailable("cuda", found == cudaSuccess
                                  ? "the driver lists no device"
                                  : std::string(cudaGetErrorString(found)) + " (" + cudaGetErrorName(found) +
                                        "); it needs an NVIDIA GPU and its driver");
  check("cudaSetDevice", cudaSetDevice(ordinal_));
  cudaDeviceProp properties{};
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, ordinal_));
  compute_capability_ = 10 * properties.major + properties.minor;
  shared_bytes_ = properties.sharedMemPerBlockOptin;
  int driver = 0, runtime = 0;
  check("cudaDriverGetVersion", cudaDriverGetVersion(&driver));
  check("cudaRuntimeGetVersion", cudaRuntimeGetVersion(&runtime));
  name_ = std::string(properties.name) + ", compute capability " + std::to_string(properties.major) + "." +
          std::to_string(properties.minor) + ", CUDA " + version(runtime) + " (driver for " + version(driver) + ")";
  check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaDevice::~CudaDevice() {
  // Devices are destroyed at the end of the process, possibly after the runtime. The runtime then returns a harmless
  // error.
  if (stream_ != nullptr && dead_.empty()) static_cast<void>(cudaStreamDestroy(stream_));
  if (staging_ != nullptr && dead_.empty()) static_cast<void>(cudaFreeHost(staging_));
}

std::string CudaDevice::description() const { return name_; }

MemoryInfo CudaDevice::memory() const {
  std::size_t available = 0, total = 0;
  const cudaError_t status = cudaMemGetInfo(&available, &total);
  if (status != cudaSuccess) throw DeviceError("cudaMemGetInfo", cudaGetErrorName(status), cudaGetErrorString(status));
  return {total, available};
}

void CudaDevice::check(const char* call, cudaError_t status) {
  if (status == cudaSuccess) return;
  const DeviceError error(call, cudaGetErrorName(status), cudaGetErrorString(status));
  // cudaGetLastError clears a failure that the context survives; a failure that ends the context recurs on the next
  // call.
  static_cast<void>(cudaGetLastError());
  if (recording_ != nullptr) throw error;  // a stream that captures cannot be queried, and nothing has run
  const cudaError_t after = cudaStreamQuery(stream_);
  if (after != cudaSuccess && after != cudaErrorNotReady && dead_.empty()) {
    dead_ = error.what();
    dead_code_ = error.code;
  }
  throw error;
}

void CudaDevice::require_alive() const {
  if (!dead_.empty()) throw DeviceError("cuda", dead_code_, "the device was switched off after " + dead_);
}

void* CudaDevice::allocate_bytes(std::size_t bytes) {
  require_alive();
  void* address = nullptr;
  const cudaError_t status = cudaMalloc(&address, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw Unavailable("CUDA memory", std::to_string(bytes) + " bytes requested, " + std::to_string(memory().available) +
                                         " of " + std::to_string(memory().total) + " available");
  }
  check("cudaMalloc", status);
  return address;
}

void* CudaDevice::allocate_guarded(std::size_t bytes, GuardPage guard_page) {
  require_alive();
  return guarded_.allocate(bytes, guard_page, ordinal_,
                           [this](const char* call, cudaError_t status) { check(call, status); });
}

void CudaDevice::release_bytes(void* address, std::size_t) noexcept {
  if (!dead_.empty()) return;
  if (recording_ != nullptr) return recording_->kept.push_back(address);
  if (!guarded_.holds(address)) return static_cast<void>(cudaFree(address));
  static_cast<void>(cudaStreamSynchronize(stream_));  // the next call reports a failure
  guarded_.release(address);
}

void CudaDevice::upload_bytes(void* destination, const void* source, std::size_t bytes) {
  require_alive();
  // While recording, the copy is made now, once, into memory that a kernel has just allocated.
  const cudaStream_t stream = recording_ != nullptr ? cudaStreamPerThread : stream_;
  check("cudaMemcpyAsync", cudaMemcpyAsync(destination, source, bytes, cudaMemcpyHostToDevice, stream));
  check("cudaStreamSynchronize", cudaStreamSynchronize(stream));
}

void CudaDevice::download_bytes(void* destination, const void* source, std::size_t bytes) {
  // The driver copies to memory that is not pinned in several steps, each as long as a small download.
  constexpr std::size_t kStagedBytes = std::size_t{1} << 20;
  synchronize();
  const bool staged = bytes <= kStagedBytes;
  if (staged && staging_ == nullptr) check("cudaMallocHost", cudaMallocHost(&staging_, kStagedBytes));
  check("cudaMemcpyAsync",
        cudaMemcpyAsync(staged ? staging_ : destination, source, bytes, cudaMemcpyDeviceToHost, stream_));
  synchronize();
  if (staged) std::memcpy(destination, staging_, bytes);
}

void CudaDevice::synchronize() {
  require_alive();
  if (recording_ != nullptr)
    throw Unavailable("a recording",
                      "the kernel waits for its own results, which are not there before the recording runs");
  check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
}

bool CudaDevice::owns(const void* address) const {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // the runtime does not know the address
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice && attributes.device == ordinal_;
}

void CudaDevice::prepare(const Kernel& kernel, const Call& call) {
  struct Scope {
    bool& flag;
    explicit Scope(bool& preparing) : flag(preparing) { flag = true; }
    ~Scope() { flag = false; }
  };
  require_alive();
  const Scope preparing(preparing_);
  kernel.run(call, *this);
}

std::unique_ptr<RecordedWork> CudaDevice::record(const std::function<void()>& work) {
  synchronize();
  auto recorded = std::make_unique<Recorded>(*this);
  cudaGraph_t captured = nullptr;
  struct Capture {
    CudaDevice& device;
    cudaGraph_t& graph;
    Capture(CudaDevice& on, Recorded* into, cudaGraph_t& to) : device(on), graph(to) {
      // Kernels may allocate, which strict captures refuse.
      device.check("cudaStreamBeginCapture", cudaStreamBeginCapture(device.stream_, cudaStreamCaptureModeRelaxed));
      device.recording_ = into;
      device.overlaps_ = false;  // nothing is before the first launch
    }
    cudaError_t end() {
      device.recording_ = nullptr;
      return cudaStreamEndCapture(device.stream_, &graph);
    }
    ~Capture() {
      if (device.recording_ == nullptr) return;
      static_cast<void>(end());
      static_cast<void>(cudaGetLastError());
      if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    }
  } capture(*this, recorded.get(), captured);
  work();
  check("cudaStreamEndCapture", capture.end());
  const cudaError_t status = cudaGraphInstantiate(&recorded->graph, captured, 0);
  static_cast<void>(cudaGraphDestroy(captured));
  check("cudaGraphInstantiate", status);
  return recorded;
}

void CudaDevice::allow_shared_bytes(const void* kernel, std::size_t bytes) {
  if (bytes > shared_bytes_)
    throw Unavailable("launch", std::to_string(bytes) +
                                    " bytes of shared memory are needed; a block of this device has " +
                                    std::to_string(shared_bytes_));
  const void* const launched = filtered(kernel);
  if (launched == kernel && allowed_[kernel] >= bytes) return;  // not for kernels of a filter, which may be unloaded
  check("cudaFuncSetAttribute",
        cudaFuncSetAttribute(launched, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  if (launched == kernel) allowed_[kernel] = bytes;
}

bool CudaDevice::awaits_previous(const void* kernel, const void* launched) {
  const auto asked = [&] {
    cudaFuncAttributes attributes{};
    check("cudaFuncGetAttributes", cudaFuncGetAttributes(&attributes, launched));
    return attributes.ptxVersion >= 90;
  };
  if (launched != kernel) return asked();
  const auto known = awaits_.find(kernel);
  return known != awaits_.end() ? known->second : awaits_.emplace(kernel, asked()).first->second;
}

LaunchFilter CudaDevice::exchange_filter(LaunchFilter filter) { return std::exchange(filter_, std::move(filter)); }

const void* CudaDevice::filtered(const void* kernel) {
  if (!filter_) return kernel;
  const char* name = nullptr;
  check("cudaFuncGetName", cudaFuncGetName(&name, kernel));
  return filter_(kernel, name);
}

void CudaDevice::launch(const cudaLaunchConfig_t& config, const void* kernel, void** arguments) {
  const void* const launched = filtered(kernel);
  if (preparing_) {
    cudaFuncAttributes attributes{};  // querying attributes loads the function
    return check("cudaFuncGetAttributes", cudaFuncGetAttributes(&attributes, launched));
  }
  cudaLaunchConfig_t as_it_can = config;
  if (!std::exchange(overlaps_, config.numAttrs > 0) || (overlaps_ && !awaits_previous(kernel, launched)))
    as_it_can.numAttrs = 0;
  check("cudaLaunchKernelExC", cudaLaunchKernelExC(&as_it_can, launched, arguments));
}

namespace {
const DeviceRegistration registration(Backend::cuda,
                                      []() -> std::unique_ptr<Device> { return std::make_unique<CudaDevice>(); });
}  // namespace

}  // namespace assay
