// This test repeats by hand what the rows of channels.def say about each channel type.

#include "chorale/channel.hpp"

#include <gtest/gtest.h>

#include <string>

#include "chorale/plan.hpp"

namespace chorale {
namespace {

std::string those(bool (*are)(ChannelType)) {
  std::string words;
  for (const ChannelType type : all_channel_types)
    if (are(type)) words += (words.empty() ? "" : " ") + std::string(channel_type_names[size_t(type)]);
  return words;
}

TEST(Channel, TypesHaveTheirProperties) {
  EXPECT_EQ(those(has_signals), "memory port");
  EXPECT_EQ(those(is_switched), "switch");
  EXPECT_EQ(those(is_direct), "memory");
  EXPECT_EQ(those(has_proxy), "port");
  for (const auto property : {has_signals, is_switched, is_direct, has_proxy})
    EXPECT_FALSE(property(ChannelType::none));
  EXPECT_EQ(signalled_position(ChannelType::port), 1u);
}

TEST(Channel, SignalsAreNumberedTypeByType) {
  Gpu gpu;
  gpu.channels = {{ChannelType::port, {1, 2}, {}, {}, {}},
                  {ChannelType::memory, {1, 2, 3}, {}, {}, {}},
                  {ChannelType::switched, {}, {}, BufferKind::input, {{0, 1}}}};
  EXPECT_EQ(gpu.first_signal(ChannelType::memory), 0u);
  EXPECT_EQ(gpu.first_signal(ChannelType::port), 3u);
  EXPECT_EQ(gpu.signal_count(), 5u);
}

}  // namespace
}  // namespace chorale
