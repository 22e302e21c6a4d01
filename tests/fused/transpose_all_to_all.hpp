#pragma once
#include <chorale/device.hpp>
#include <cstdint>

/// Exchanges and transposes. Every rank has rows x (ranks * cols) elements. Rank p gets columns p * cols and
/// on of every rank, transposed. Its result is `ranks` matrices of cols x rows.
template <class T>
struct TransposeAllToAll {
  chorale::EndpointTable table;
  const T* in;
  T* out;
  uint32_t rows, cols;

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    chorale::Leg leg;
    leg.in = in;
    leg.out = out;
    leg.bytes = uint64_t(rows) * cols * sizeof(T);  // the data that one rank sends to another
    leg.rows = rows;
    leg.cols = cols;
    leg.in_strides = {uint64_t(cols) * uint32_t(table.ranks), 1};
    return chorale::all_to_all<T>(group, table, leg, {cols * sizeof(T), leg.bytes},
                                  chorale::TransposeProduce<T>{}, chorale::CopyConsume{}, deadline);
  }
};
