#include "analyze/attribution/model_tensors.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace tidemark {
namespace {

constexpr std::uint32_t kNoTensor = std::numeric_limits<std::uint32_t>::max();

// The program's report of its tensors at one time: between two changes of the live set.
struct Inquiry {
  std::uint64_t change_count = 0;
  std::vector<std::uint32_t> tensors;  // by device, address, role
};

int rank_of(ModelTensor::Role role) {
  switch (role) {
    case ModelTensor::Role::parameter:
      return 0;
    case ModelTensor::Role::buffer:
      return 1;
    case ModelTensor::Role::optimizer_state:
      return 2;
    case ModelTensor::Role::gradient:
      return 3;
  }
  return 4;
}

std::vector<Inquiry> inquiries_of(const Store& store) {
  const std::vector<ModelTensor>& tensors = store.definitions.tensors;
  std::vector<std::uint32_t> order;
  for (std::uint32_t index = 0; index < tensors.size(); ++index) {
    if (tensors[index].address != 0 && tensors[index].storage_bytes != 0) order.push_back(index);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    return tensors[left].time_ns < tensors[right].time_ns;
  });
  std::vector<Inquiry> inquiries;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const bool same_time = at > 0 && tensors[order[at]].time_ns == tensors[order[at - 1]].time_ns;
    const std::uint64_t change_count =
        same_time ? inquiries.back().change_count : store.changes_until(tensors[order[at]].time_ns);
    if (inquiries.empty() || inquiries.back().change_count != change_count) inquiries.push_back({change_count, {}});
    inquiries.back().tensors.push_back(order[at]);
  }
  const auto key = [&](std::uint32_t index) {
    const ModelTensor& tensor = tensors[index];
    return std::tuple(tensor.device.type, tensor.device.index, tensor.address, rank_of(tensor.role), index);
  };
  for (Inquiry& inquiry : inquiries) {
    std::sort(inquiry.tensors.begin(), inquiry.tensors.end(),
              [&](std::uint32_t left, std::uint32_t right) { return key(left) < key(right); });
  }
  return inquiries;
}

}  // namespace

std::vector<TensorInBlock> find_model_tensors(const Store& store) {
  const std::vector<Inquiry> inquiries = inquiries_of(store);
  const std::vector<ModelTensor>& tensors = store.definitions.tensors;
  const Blocks& blocks = store.blocks;
  std::vector<TensorInBlock> found;
  // Calls `visit` with each tensor that a block held at one time.
  const auto visit_tensors = [&](const Inquiry& inquiry, std::size_t block, const auto& visit) {
    const Device device = store.devices[blocks.device[block]].device;
    const auto before = [&](std::uint32_t index, std::uint64_t address) {
      const ModelTensor& tensor = tensors[index];
      return std::tuple(tensor.device.type, tensor.device.index, tensor.address) <
             std::tuple(device.type, device.index, address);
    };
    const std::uint64_t begin = blocks.address[block];
    for (auto at = std::lower_bound(inquiry.tensors.begin(), inquiry.tensors.end(), begin, before);
         at != inquiry.tensors.end(); ++at) {
      const ModelTensor& tensor = tensors[*at];
      if (tensor.device != device || tensor.address - begin >= blocks.size[block]) break;
      visit(*at);
    }
  };
  // The tensor of least rank in a block at one time.
  const auto search = [&](const Inquiry& inquiry, std::size_t block, std::uint32_t best) {
    visit_tensors(inquiry, block, [&](std::uint32_t index) {
      const ModelTensor& tensor = tensors[index];
      // The first part of a flat buffer may have been mistaken for the whole buffer.
      const auto is_better = [&](const ModelTensor& other) {
        const int lead = rank_of(other.role) - rank_of(tensor.role);
        return lead > 0 || (lead == 0 && tensor.address == other.address && tensor.storage_bytes > other.storage_bytes);
      };
      if (best == kNoTensor || is_better(tensors[best])) best = index;
    });
    return best;
  };
  // Modules of the tensors in the same storage.
  const auto modules_of_storage = [&](const Inquiry& inquiry, std::size_t block, const ModelTensor& best) {
    std::vector<NnModuleId> modules;
    visit_tensors(inquiry, block, [&](std::uint32_t index) {
      const ModelTensor& tensor = tensors[index];
      if (tensor.role == best.role && tensor.address == best.address) modules.push_back(tensor.module);
    });
    return modules;
  };
  auto next = inquiries.begin();  // blocks are in order of birth
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    while (next != inquiries.end() && next->change_count <= blocks.birth_change[block]) ++next;
    std::uint32_t best = kNoTensor;
    auto told = next;
    for (auto inquiry = next; inquiry != inquiries.end() && inquiry->change_count <= blocks.death_change[block];
         ++inquiry) {
      const std::uint32_t before = std::exchange(best, search(*inquiry, block, best));
      if (best != before) told = inquiry;
      if (best != kNoTensor && rank_of(tensors[best].role) == 0) break;
    }
    if (best == kNoTensor) continue;
    found.push_back(
        {BlockId{static_cast<std::uint32_t>(block)}, best, modules_of_storage(*told, block, tensors[best])});
  }
  return found;
}

}  // namespace tidemark
