#include "loading/device_conversions.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string_view>

namespace tidemark {

namespace {

constexpr unsigned kThreads = 256;  // of a block

// %i is the element's number, %x its value; see the PTX ISA, 6.0.
constexpr std::string_view kBegin = R"(
.visible .entry {}(.param .u64 to, .param .u64 from, .param .u64 count, .param .f32 scale, .param .f32 added)
{{
  .reg .pred %done, %nan;
  .reg .b16 %h;
  .reg .b32 %block, %size, %thread, %u, %v;
  .reg .b64 %i, %j, %n, %a, %b;
  .reg .f32 %x, %s, %o;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %i, %block, %size;
  cvt.u64.u32 %j, %thread;
  add.u64 %i, %i, %j;
  ld.param.u64 %n, [count];
  setp.ge.u64 %done, %i, %n;
  @%done bra end;
  ld.param.u64 %a, [from];
  ld.param.u64 %b, [to];
  ld.param.f32 %s, [scale];
  ld.param.f32 %o, [added];
  cvta.to.global.u64 %a, %a;
  cvta.to.global.u64 %b, %b;
)";
constexpr std::string_view kLoadUint8 = R"(  add.u64 %a, %a, %i;
  ld.global.u8 %u, [%a];
  cvt.rn.f32.u32 %x, %u;
)";
constexpr std::string_view kLoadFloat32 = R"(  shl.b64 %j, %i, 2;
  add.u64 %a, %a, %j;
  ld.global.f32 %x, [%a];
)";
constexpr std::string_view kScale = "  fma.rn.f32 %x, %x, %s, %o;\n";
constexpr std::string_view kStoreFloat32 = R"(  shl.b64 %j, %i, 2;
  add.u64 %b, %b, %j;
  st.global.f32 [%b], %x;
)";
constexpr std::string_view kStoreFloat16 = R"(  cvt.rn.f16.f32 %h, %x;
  shl.b64 %j, %i, 1;
  add.u64 %b, %b, %j;
  st.global.b16 [%b], %h;
)";
// In integer arithmetic: devices before compute capability 8.0 have no such conversion.
constexpr std::string_view kStoreBfloat16 = R"(  mov.b32 %u, %x;
  shr.u32 %v, %u, 16;
  and.b32 %v, %v, 1;
  add.u32 %u, %u, %v;
  add.u32 %u, %u, 0x7fff;
  shr.u32 %u, %u, 16;
  setp.nan.f32 %nan, %x, %x;
  selp.b32 %u, 0x7fff, %u, %nan;
  shl.b64 %j, %i, 1;
  add.u64 %b, %b, %j;
  st.global.u16 [%b], %u;
)";
constexpr std::string_view kEnd = R"(end:
  ret;
}
)";

struct Part {
  ElementType type;
  std::string_view text;
};
constexpr Part kLoads[] = {{ElementType::uint8, kLoadUint8}, {ElementType::float32, kLoadFloat32}};
constexpr Part kStores[] = {{ElementType::float32, kStoreFloat32},
                            {ElementType::float16, kStoreFloat16},
                            {ElementType::bfloat16, kStoreBfloat16}};

std::string kernel_name(ElementType from, ElementType to) {
  return fmt::format("tidemark_{}_to_{}", element_name(from), element_name(to));
}

}  // namespace

DeviceConversions::~DeviceConversions() {
  if (module_ == nullptr || copies_.was_forked()) return;
  const cuda::Driver& driver = copies_.driver();
  const cuda::CurrentContext current(driver, copies_.context());
  driver.synchronize_stream(copies_.stream());
  driver.unload_module(module_);
}

Result<cuda::Function> DeviceConversions::kernel(const std::string& name) {
  const cuda::Driver& driver = copies_.driver();
  const std::lock_guard lock(mutex_);
  if (module_ == nullptr) {
    const auto status = driver.load_module(&module_, conversion_module().c_str());
    if (status != cuda::kSuccess) {
      module_ = nullptr;
      return driver.error("the conversions' kernels: cuModuleLoadData", status);
    }
  }
  cuda::Function& function = kernels_[name];
  if (function == nullptr) {
    const auto status = driver.find_function(&function, module_, name.c_str());
    if (status != cuda::kSuccess) {
      function = nullptr;
      return driver.error(fmt::format("{}: cuModuleGetFunction", name).c_str(), status);
    }
  }
  return function;
}

Result<void> DeviceConversions::begin(const ElementConversion& conversion, cuda::DevicePointer from,
                                      cuda::DevicePointer to, std::size_t elements) {
  if (elements == 0) return {};
  const std::uint64_t blocks = (elements + kThreads - 1) / kThreads;
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    return Error{fmt::format("{} elements are too many for one conversion", elements)};
  }
  const cuda::Driver& driver = copies_.driver();
  const cuda::CurrentContext current(driver, copies_.context());
  const auto function = kernel(conversion_kernel(conversion));
  if (!function) return function.error();
  std::uint64_t count = elements;
  float scale = conversion.scale;
  float added = addend(conversion);
  void* parameters[] = {&to, &from, &count, &scale, &added};
  const auto status = driver.launch(*function, static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, copies_.stream(),
                                    parameters, nullptr);
  if (status != cuda::kSuccess) return driver.error("cuLaunchKernel", status);
  return {};
}

std::string conversion_module() {
  std::string module = ".version 6.0\n.target sm_50\n.address_size 64\n";
  for (const Part& load : kLoads) {
    for (const Part& store : kStores) {
      module += fmt::format(kBegin, kernel_name(load.type, store.type));
      module.append(load.text).append(kScale).append(store.text).append(kEnd);
    }
  }
  return module;
}

std::string conversion_kernel(const ElementConversion& conversion) {
  return kernel_name(conversion.from, conversion.to);
}

}  // namespace tidemark
