#pragma once
// Makes host schedules for tests, as plans.

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "chorale/json.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::test {

enum class Order { linear, rotated, ring };
/// Names styles of streams. `pool`: turn i on pool stream i % streams. `two`: transfers on one stream,
/// compute on another.
enum class Style { pool, two };

inline constexpr const char* order_names[] = {"linear", "rotated", "ring"};
inline constexpr const char* style_names[] = {"pool", "two"};

struct Form {
  Order order = Order::rotated;
  Style style = Style::pool;
  int pool = 2;

  std::string text() const {
    return fmt::format("{} {} of {}", order_names[size_t(order)], style_names[size_t(style)], pool);
  }
};

/// Returns the turns of an all-gather of `from` into `to`, with one slice per rank along axis 0 and `compute`
/// after each. The text is JSON; "@" in `compute` is the slice of the turn.
inline std::string turns(const Form& form, const std::string& from, const std::string& to,
                         const std::string& compute) {
  const bool pool = form.style == Style::pool;
  const std::string transfer_stream = pool ? R"(["pool",["%","i","lanes"]])" : R"("comm")";
  const std::string compute_stream = pool ? transfer_stream : R"("comp")";
  std::string slice, peer_from, peer_to, sent = fmt::format(R"(["{}"])", from), own;
  switch (form.order) {
    case Order::linear:
      slice = peer_from = peer_to = R"("i")";
      own = R"(["==","i","rank"])";
      break;
    case Order::rotated:
      slice = peer_from = R"(["%",["+","rank","i"],"ranks"])";
      peer_to = R"(["%",["-","rank","i"],"ranks"])";
      own = R"(["==","i",0])";
      break;
    case Order::ring:
      slice = R"(["%",["-","rank","i"],"ranks"])";
      peer_from = R"(["%",["-","rank",1],"ranks"])";
      peer_to = R"(["%",["+","rank",1],"ranks"])";
      sent = fmt::format(R"(["{}",[0,["%",["-",["+","rank",1],"i"],"ranks"]]])", to);
      own = R"(["==","i",0])";
      break;
  }
  const std::string begin =
      pool
          ? fmt::format(
                R"({{"op":"for","i":"i","lo":0,"hi":"ranks","body":[{{"op":"after","lane":{},"on":["main"]}}]}},)",
                transfer_stream)
          : R"({"op":"fork","lanes":["comm","comp"]},)";
  // A slice that arrived on one pool stream is sent in the next turn, on another stream.
  const std::string chain =
      pool && form.order == Order::ring
          ? R"({"op":"if","p":["<",0,"i"],"then":[{"op":"after","lane":["pool",["%","i","lanes"]],"on":[["pool",["%",["-","i",1],"lanes"]]]}]},)"
          : "";
  std::string body = fmt::format(
      R"({{"op":"if","p":{own},"then":[{{"op":"copy","lane":{stream},"dst":["{to}",[0,{slice}]],"src":["{from}",[0,0]],"at":0}}],
          "else":[{{"op":"group","lane":{stream},"token":1,"do":[
                     {{"op":"recv","dst":["{to}",[0,{slice}]],"peer":{peer_from},"at":1}},
                     {{"op":"send","src":{sent},"peer":{peer_to},"at":2}}],"at":0}},
                  {{"op":"wait","lane":{stream},"token":1,"at":3}}]}})",
      fmt::arg("own", own), fmt::arg("stream", transfer_stream), fmt::arg("to", to), fmt::arg("from", from),
      fmt::arg("slice", slice), fmt::arg("peer_from", peer_from), fmt::arg("peer_to", peer_to),
      fmt::arg("sent", sent));
  if (!pool) body += R"(,{"op":"after","lane":"comp","on":["comm"]})";
  if (!compute.empty()) {
    std::string call = compute;
    for (size_t at; (at = call.find('@')) != std::string::npos;) call.replace(at, 1, slice);
    for (size_t at; (at = call.find('$')) != std::string::npos;) call.replace(at, 1, compute_stream);
    body += "," + call;
  }
  const std::string join = R"({"op":"after","on":[["pool",["%","i","lanes"]]]})";
  const std::string end =
      pool ? fmt::format(R"(,{{"op":"for","i":"i","lo":0,"hi":"ranks","body":[{}]}})", join)
           : R"(,{"op":"join","lanes":["comm","comp"]})";
  return begin + fmt::format(R"({{"op":"for","i":"i","lo":0,"hi":"ranks","body":[{}{}]}})", chain, body) +
         end;
}

inline Plan plan_of(const Form& form, const std::string& params, const std::string& tensors,
                    const std::string& body, const std::string& functions, const std::string& more = "") {
  return read(schedule::plan_with(fmt::format(
      R"({{{}"params":{},"lanes":["comm","comp"],"pool":{},"tensors":[{}],"functions":[{}],"body":[{}],
           "source":["ag.cpp:10","ag.cpp:11","ag.cpp:12","ag.cpp:13"]}})",
      more, params, form.pool, tensors, functions, body)));
}

/// AllgatherP2p: t0[ranks, n] spread over the ranks becomes t1[ranks, n] everywhere. Functions `produce`
/// (t0) and `consume` (of t1) of the application come first and last.
inline Plan allgather_p2p(const Form& form) {
  return plan_of(form, R"({"n":null})",
                 R"({"name":"t0","dtype":"i32","shape":["ranks","n"],"tags":["ranks",null],"role":"in"},
                    {"name":"t1","dtype":"i32","shape":["ranks","n"],"tags":["lanes",null],"role":"out","space":"window"})",
                 R"({"op":"call","fn":"produce","writes":[["t0"]],"reads":[]},)" +
                     turns(form, "t0", "t1", "") +
                     R"(,{"op":"call","fn":"consume","writes":[],"reads":[["t1"]]})",
                 R"({"name":"produce","writes":1,"reads":0},{"name":"consume","writes":0,"reads":1})");
}

/// AG_matmul_P2p: C[ranks, M/ranks, N] = A[ranks, M/ranks, K] B[K, N], one slice per turn, with A gathered in
/// G.
inline Plan ag_matmul_p2p(const Form& form, const std::string& dtype) {
  const auto tensor = [&](const char* name, const char* tag, const char* last, const char* role) {
    return fmt::format(
        R"({{"name":"{}","dtype":"{}","shape":["ranks",["/","M","ranks"],"{}"],"tags":["{}",null,null],{}}})",
        name, dtype, last, tag, role);
  };
  return plan_of(
      form, R"({"M":null,"K":null,"N":null})",
      tensor("A", "ranks", "K", R"("role":"in")") + "," +
          fmt::format(R"({{"name":"B","dtype":"{}","shape":["K","N"],"role":"in"}})", dtype) + "," +
          tensor("G", "lanes", "K", R"("role":"temp","space":"window")") + "," +
          tensor("C", "lanes", "N", R"("role":"out")"),
      R"({"op":"alloc","t":"G"},)" +
          turns(form, "A", "G",
                R"({"op":"call","lane":$,"fn":"matmul","writes":[["C",[0,@]]],"reads":[["G",[0,@]],["B"]]})"),
      "");
}

/// Returns two exchanges of x between two ranks on stream comm, and then, on stream comp, `consume` of the
/// data of the first. Rank 1 reaches the second exchange after its `hold`.
inline Plan compute_beside_an_exchange() {
  const auto exchange = [](int turn) {
    return fmt::format(
        R"({{"op":"group","lane":"comm","token":{0},"do":[{{"op":"recv","dst":["g",[0,{0}]],"peer":["-",1,"rank"]}},
                                                          {{"op":"send","src":["x",[0,{0}]],"peer":["-",1,"rank"]}}]}},)",
        turn);
  };
  return plan_of(
      {}, "{}",
      R"({"name":"x","dtype":"i32","shape":[2,100],"role":"in"},{"name":"g","dtype":"i32","shape":[2,100],"role":"out"})",
      R"({"op":"fork","lanes":["comm","comp"]},)" + exchange(0) +
          R"({"op":"if","p":["==","rank",1],"then":[{"op":"call","lane":"comm","fn":"hold","writes":[],"reads":[]}]},)" +
          exchange(1) +
          R"({"op":"wait","lane":"comp","token":0},{"op":"call","lane":"comp","fn":"consume","writes":[],"reads":[["g",[0,0]]]},
             {"op":"wait","lane":"comp","token":1},{"op":"join","lanes":["comm","comp"]})",
      R"({"name":"hold","writes":0,"reads":0},{"name":"consume","writes":0,"reads":1})");
}

/// Returns a schedule of m, k and n on streams comm and comp, which launches plans.
inline Plan launching(const std::string& tensors, const std::string& body) {
  return read(schedule::plan_with(fmt::format(
      R"({{"params":{{"m":null,"k":null,"n":null}},"lanes":["comm","comp"],"pool":0,"tensors":[{}],"body":[{}],
           "source":["tp.cpp:10","tp.cpp:11","tp.cpp:12"]}})",
      tensors, body)));
}

inline std::string tensor(const char* name, const char* shape, const char* role, const char* dtype = "f32") {
  return fmt::format(R"({{"name":"{}","dtype":"{}","shape":[{}],"role":"{}"}})", name, dtype, shape, role);
}

/// Returns C = the sum over the ranks of each rank's A B.
inline Plan matmul_allreduce() {
  return launching(tensor("A", R"("m","k")", "in") + "," + tensor("B", R"("k","n")", "in") + "," +
                       tensor("P", R"("m","n")", "temp") + "," + tensor("C", R"("m","n")", "out"),
                   R"({"op":"alloc","t":"P"},
                        {"op":"call","fn":"matmul","writes":[["P"]],"reads":[["A"],["B"]]},
                        {"op":"launch","plan":"reduce","dst":["C"],"src":["P"],"at":1})");
}

/// Returns G = every rank's A on stream comm, and on stream comp C = A B, and D = its sum over the ranks in
/// two launches.
inline Plan allgather_beside_matmul() {
  return launching(tensor("A", R"("m","k")", "in") + "," + tensor("B", R"("k","n")", "in") + "," +
                       tensor("G", R"("ranks","m","k")", "out") + "," + tensor("C", R"("m","n")", "out") +
                       "," + tensor("D", R"("m","n")", "out"),
                   R"({"op":"fork","lanes":["comm","comp"]},
         {"op":"launch","lane":"comm","plan":"gather","dst":["G"],"src":["A"],"at":0},
         {"op":"call","lane":"comp","fn":"matmul","writes":[["C"]],"reads":[["A"],["B"]]},
         {"op":"for","i":"i","lo":0,"hi":2,"body":[
           {"op":"launch","lane":"comp","plan":"reduce","dst":["D",[0,["*","i",["/","m",2]],["/","m",2]]],
            "src":["C",[0,["*","i",["/","m",2]],["/","m",2]]],"at":1}]},
         {"op":"join","lanes":["comm","comp"]})");
}

}  // namespace chorale::test
