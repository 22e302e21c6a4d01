// These tests check types and operators by the names of other systems: what each stands for, and what is
// refused.

#include "chorale/other_names.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/unit/message_of_error.hpp"

namespace chorale {
namespace {

using test::message_of_error;

TEST(OtherNames, WordsOfOthersAreOurs) {
  const struct {
    const char *word, *name;
  } words[] = {
#define CHORALE_SYNONYM(word, name) {#word, #name},
#include "chorale/other_names.def"
      {"Float", "f32"},        {"BFloat16", "bf16"}, {"Float8_e4m3fn", "fp8_e4m3"},
      {"ComplexFloat", "c64"}, {"PRODUCT", "prod"},  {"Bool", "bool"},
      {"BAND", "band"},        {"F32", "f32"},       {"f33", "f33"},
  };
  for (const auto& [word, name] : words) EXPECT_EQ(name_here(word), name) << word;
}

TEST(OtherNames, WhatIsOursStandsForItself) {
  for (const DType type : all_dtypes) {
    EXPECT_EQ(carrier_of(dtype_name(type)), type);
    EXPECT_EQ(element_bytes(dtype_name(type)), dtype_size(type));
    for (const ReduceOp op : all_reduce_ops) {
      const StandsFor found = stands_for(dtype_name(type), reduce_op_name(op));
      EXPECT_EQ(found.dtype, type);
      EXPECT_EQ(found.op, op);
    }
  }
}

TEST(OtherNames, OthersStandForWhatHasTheSameBits) {
  const struct {
    const char *type, *op;
    DType dtype;
    ReduceOp by;
  } rows[] = {
#define CHORALE_STANDS_FOR(type, op, dtype, by) {#type, #op, DType::dtype, ReduceOp::by},
#include "chorale/other_names.def"
  };
  for (const auto& row : rows) {
    const StandsFor found = stands_for(row.type, row.op);
    EXPECT_EQ(found.dtype, row.dtype) << row.type << " " << row.op;
    EXPECT_EQ(found.op, row.by) << row.type << " " << row.op;
    EXPECT_EQ(carrier_of(row.type), row.dtype);
    EXPECT_EQ(element_bytes(row.type) % dtype_size(row.dtype), 0u);
    EXPECT_TRUE(names_other_dtype(row.type));
  }
}

TEST(OtherNames, WhatThereIsNotIsRefusedByName) {
  const struct {
    const char *type, *op, *says;
  } cases[] = {
      {"bool", "bxor", "not by bxor; gather the words, and combine their bits yourself, or sum bools as i32"},
      {"u64", "premul_sum", "not by premul_sum; multiply the input by the factor"},
      {"c64", "max", "not by max"},
      {"c64", "prod", "Chorale reduces c64 by sum and avg only, not by prod; gather the numbers"},
      {"i16", "sum", "Chorale has no type i16: no kernel adds integers of 16 bits; convert it to i32"},
      {"u16", "max", "Chorale has no type u16"},
      {"i32", "band", "Chorale reduces i32 by sum, min, max, prod, avg only, not by band; gather the words"},
      {"i32", "bor", "not by bor; gather the words"},
      {"u8", "bxor", "not by bxor; gather the words"},
      {"f32", "premul_sum", "not by premul_sum; multiply the input by the factor, and reduce it by sum"},
      {"QInt8", "sum", "Chorale has no type QInt8; convert it to a type that it has"},
  };
  for (const auto& one : cases) {
    const std::string said = message_of_error<UsageError>([&] { stands_for(one.type, one.op); });
    EXPECT_NE(said.find(one.says), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace chorale
