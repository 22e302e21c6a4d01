// These tests compare the transposing all-to-all with the transposes of the ranks' matrices.

#include "chorale/fused/transpose.hpp"

#include "tests/has.hpp"
#include "tests/unit/fused/calls.hpp"

namespace chorale {
namespace {

using namespace test;
using fused::Form;
using fused::TransposeAllToAll;

constexpr Form transpose_forms[] = {Form::packets, Form::window, Form::tiles};

/// Makes a call. If it `stays`, the result stays in the window.
template <class T>
void call_transpose(World& world, TransposeAllToAll& turn, uint32_t rows, uint32_t cols, uint64_t call,
                    bool stays = false) {
  const uint64_t ranks = uint64_t(world.ranks()), n = uint64_t(rows) * cols * ranks;
  const auto in = message_of<T>(call * 100 + uint64_t(world.rank()), n);
  std::vector<T> out(n + 1), expected(n);
  turn.run<T>(in.data(), stays ? nullptr : out.data(), rows, cols);
  for (uint64_t peer = 0; peer < ranks; ++peer) {
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t col = 0; col < cols; ++col) {
        expected[(peer * cols + col) * rows + row] =
            value_at<T>(call * 100 + peer, row * cols * ranks + uint64_t(world.rank()) * cols + col);
      }
    }
  }
  ASSERT_EQ(first_difference(stays ? turn.result<T>() : out.data(), expected.data(), n), n);
  ASSERT_EQ(out[n], T{});
}

template <class T>
void test_transpose() {
  for (const Form form : transpose_forms) {
    for (const int ranks : all_ranks) {
      for (const uint32_t threads : all_threads) {
        SCOPED_TRACE(testing::Message() << "form " << int(form) << ", " << ranks << " ranks, " << threads
                                        << " threads, " << sizeof(T));
        run_local(ranks, [&](World& world) {
          TransposeAllToAll turn(world, uint64_t(ranks) * 37 * 21 * sizeof(T),
                                 setup_of(form, 2 * uint32_t(ranks), threads));
          uint64_t call = 0;
          call_transpose<T>(world, turn, 37, 21, ++call);
          call_transpose<T>(world, turn, 300, 2, ++call);
          call_transpose<T>(world, turn, 5, 100, ++call, form == Form::window);
          call_transpose<T>(world, turn, 1, 1, ++call);
          call_transpose<T>(world, turn, 0, 7, ++call);
          call_transpose<T>(world, turn, 37, 21, ++call);
          world.barrier();
        });
      }
    }
  }
}

TEST(Transpose, AnyShape) {
  test_transpose<uint8_t>();
  test_transpose<uint16_t>();
  test_transpose<float>();
  test_transpose<double>();
}

TEST(Transpose, InAnyOrder) {
  for (const Form form : transpose_forms) {
    in_any_order(3, [form](World& world, uint64_t seed) {
      TransposeAllToAll turn(world, 3 * 9 * 6 * sizeof(float),
                             setup_of(form, form == Form::window ? 1 + seed % 2 : 3, 1 + seed % 3));
      for (uint64_t call = 0; call < 3; ++call)
        call_transpose<float>(world, turn, 9 - seed % 2, 4 + seed % 3, call,
                              form == Form::window && call == 1);
      world.barrier();
    });
  }
}

/// Makes a call of each form, for expect_named_errors() and expect_lost_process().
template <class Expect>
void each_transpose(const Expect& expect) {
  for (const Form form : transpose_forms) {
    expect([form](World& world) { return TransposeAllToAll(world, 3 * 4000, setup_of(form, 3, 1)); },
           [](TransposeAllToAll& turn, World& world, uint64_t number) {
             call_transpose<float>(world, turn, 30, 20, number);
           });
  }
}

TEST(Transpose, EndsInANamedError) {
  each_transpose([](const auto&... of) { expect_named_errors(of...); });
}

TEST(Transpose, NamesLostProcesses) {
  each_transpose([](const auto&... of) { expect_lost_process(of...); });
}

TEST(Transpose, ChoosesTheForm) {
  run_local(2, [](World& world) {
    TransposeAllToAll turn(world, 1 << 20);
    EXPECT_EQ(turn.form(256 << 10), Form::packets);
    EXPECT_EQ(turn.form((256 << 10) + 16), Form::window);
    call_transpose<float>(world, turn, 256, 128, 1);
    call_transpose<float>(world, turn, 512, 256, 2);
    world.barrier();
  });
}

TEST(Transpose, Refusals) {
  run_local(2, [](World& world) {
    TransposeAllToAll packets(world, 1024, setup_of(Form::packets, 0, 0)),
        tiles(world, 1 << 20, setup_of(Form::tiles, 0, 0)), window(world, 1024);
    std::vector<float> data(1 << 18);
    const auto said = [&](TransposeAllToAll& turn, const float* in, float* out, uint32_t rows,
                          uint32_t cols) {
      return message_of_error<UsageError>([&] { turn.run<float>(in, out, rows, cols); });
    };
    EXPECT_EQ(
        said(packets, data.data(), data.data(), 129, 1),
        "TransposeAllToAll: 129 rows of 2 x 1 elements of 4 bytes take 1032 bytes, and this object was made "
        "for 1024: make it with max_bytes = 1032");
    EXPECT_TRUE(has(said(tiles, data.data(), data.data(), 16385, 1), "longer than a slot of 65536 bytes"));
    EXPECT_TRUE(has(said(packets, data.data(), nullptr, 8, 1), "must not be null"));
    EXPECT_TRUE(has(said(window, nullptr, data.data(), 8, 1), "must not be null"));
    EXPECT_TRUE(has(message_of_error<UsageError>(
                        [&] { TransposeAllToAll(world, 64, setup_of(Form::packets_twice, 0, 0)); }),
                    "no form packets_twice"));
  });
}

}  // namespace
}  // namespace chorale
