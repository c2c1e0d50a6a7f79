// Compares declarations of this project with a vendor's header, as far as possible at compile time.
#pragma once

#include <cstddef>
#include <type_traits>

namespace tidemark::testing {

// Types that are interchangeable in a call: numbers of one size, pointers, and nothing.
template <typename Type>
concept Number = std::is_integral_v<Type> || std::is_enum_v<Type>;
template <typename Ours, typename Theirs>
constexpr bool kSameArgument = (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) ||
                               (std::is_void_v<Ours> && std::is_void_v<Theirs>);
template <Number Ours, Number Theirs>
constexpr bool kSameArgument<Ours, Theirs> = sizeof(Ours) == sizeof(Theirs);

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename OurReturn, typename... Ours, typename TheirReturn, typename... Theirs>
struct SameCall<OurReturn (*)(Ours...), TheirReturn (*)(Theirs...)> {
  static constexpr bool all() {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
      return kSameArgument<OurReturn, TheirReturn> && (kSameArgument<Ours, Theirs> && ...);
    }
    return false;
  }
  static constexpr bool value = all();
};

}  // namespace tidemark::testing

/// Two types of pointers to functions are interchangeable.
#define SAME_CALL(ours, theirs) static_assert(::tidemark::testing::SameCall<ours, theirs>::value, #theirs)

/// A field has the same offset and size.
#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                    sizeof(ours::our_field) == sizeof(theirs::their_field),   \
                #theirs "::" #their_field)
