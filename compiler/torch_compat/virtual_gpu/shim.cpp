// What torch's C++ side asks of an accelerator, answered for one that is not there: device 0, its default stream, and nothing else.
// Without a device guard, autograd on a fake CUDA tensor ends the process; without hooks, it finds no accelerator.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <new>

namespace {

const c10::Device device0(c10::DeviceType::CUDA, 0);
const c10::Stream stream0(c10::Stream::DEFAULT, device0);

// Autograd's engine counts devices once, at the first backward, starts a thread for each, and then works in no fork. At that moment
// there is none; backwards run in the thread that asks for them.
c10::DeviceIndex devices = 0;

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device exchangeDevice(c10::Device) const override { return device0; }
  c10::Device getDevice() const override { return device0; }
  c10::Stream getStream(c10::Device) const noexcept override { return stream0; }
  c10::Stream getDefaultStream(c10::Device) const override { return stream0; }
  c10::Stream getNewStream(c10::Device, int) const override { return stream0; }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream0; }
  c10::DeviceIndex deviceCount() const noexcept override { return devices; }
};

constexpr long cudnn_version = 92000;

struct Hooks final : at::CUDAHooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex current_device() const override { return 0; }
  // Nothing is drawn on the device: whoever asks for its generator gets one of the CPU's.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return at::detail::getDefaultCPUGenerator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  bool compiledWithCuDNN() const override { return true; }
  bool supportsDilatedConvolutionWithCuDNN() const override { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const override { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override { return true; }
  bool supportsBFloat16RNNWithCuDNN() const override { return true; }
  long versionCuDNN() const override { return cudnn_version; }
  long versionRuntimeCuDNN() const override { return cudnn_version; }
  double batchnormMinEpsilonCuDNN() const override { return 0.0; }
};

// The hooks object is replaced in its place.
static_assert(sizeof(Hooks) == sizeof(at::CUDAHooksInterface), "the hooks must hold no data");

constexpr int64_t math = 0, flash = 1, efficient = 2, cudnn = 3;  // at::SDPBackend
int64_t half_choice = flash;

// An approximation of torch's own order of preference: its checks ask the real device and are not in this build of torch.
int64_t choose(const at::Tensor& query, const at::Tensor&, const at::Tensor& value, const std::optional<at::Tensor>& mask,
               double, bool, std::optional<double>, bool) {
  const auto dtype = query.scalar_type();
  const bool half = dtype == at::kHalf || dtype == at::kBFloat16;
  const auto head = query.sym_size(-1);
  if (dtype == at::kDouble) return math;
  if (half && half_choice == cudnn && head <= 128) return cudnn;
  if (half && half_choice != efficient && !mask && head <= 256 && head == value.sym_size(-1)) return flash;
  return efficient;
}

}  // namespace

extern "C" void aotscope_install(int64_t half) {
  half_choice = half;
  c10::impl::registerDeviceGuard(c10::DeviceType::CUDA, new Guard());
  new (const_cast<at::CUDAHooksInterface*>(&at::detail::getCUDAHooks())) Hooks();
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose);
}

extern "C" void aotscope_appear() { devices = 1; }
