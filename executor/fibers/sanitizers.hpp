/// \file
/// Defines the sanitizer for which this code is compiled, because gcc and clang report it in different ways.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define CHORALE_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define CHORALE_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHORALE_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define CHORALE_TSAN 1
#endif
#endif
