// Bodies of the records of host_sample.h: see sample_codec.h.
#pragma once

#include <cstddef>

#include "trace/host_sample.h"
#include "trace/record_fields.h"

namespace tidemark {

void put_fields(FieldWriter& fields, const HostPartsSample& sample);
void put_fields(FieldWriter& fields, const KilledProcess& killed);

/// The smallest HostProcess takes so many bytes in the file: its length, and fields of a byte each.
inline constexpr std::size_t kMinHostProcessBytes = 17;

/// What is missing because the body ends is none, empty or 0, and then `fields` is not ok().
[[nodiscard]] HostPartsSample read_host_parts(FieldReader& fields);
[[nodiscard]] KilledProcess read_killed_process(FieldReader& fields);

}  // namespace tidemark
