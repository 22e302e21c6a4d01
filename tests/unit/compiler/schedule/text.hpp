#pragma once
// Makes host schedules as texts of plan files.

#include <string>

namespace chorale::schedule {

/// Returns a plan without thread blocks around the section "host".
inline std::string plan_with(const std::string& host) {
  return R"({
  "name": "test",
  "collective": "custom",
  "protocol": "Simple",
  "inplace": false,
  "reuse_resources": false,
  "gpus": [],
  "num_threads_per_block": 1024,
  "use_double_scratch_buffer": false,
  "buffer_alignment": 16,
  "min_message_size": 0,
  "max_message_size": 18446744073709551615,
  "chorale": {
    "version": "1.0",
    "host": )" +
         host + R"(
  }
}
)";
}

/// Returns a schedule with every operation and every key, in canonical form.
inline std::string one_of_everything() {
  return R"({
      "params": {"M":1024,"K":null},
      "ranks": [2,8],
      "lanes": ["comm","comp"],
      "pool": 4,
      "made_with": {"order":"rotated","style":"pool"},
      "flags": [
        {"name":"ready","kind":"binary","at":1},
        {"name":"turns","kind":"counter"}
      ],
      "tensors": [
        {"name":"A","dtype":"f32","shape":["ranks",["/","M","ranks"],"K"],"tags":["ranks",null,null],"role":"in"},
        {"name":"G","dtype":"bf16","shape":["ranks",["/","M","ranks"],"K"],"tags":["lanes",null,null],"role":"temp","space":"window","zero":true,"at":0},
        {"name":"C","dtype":"fp8_e4m3","shape":[],"role":"out","space":"host"}
      ],
      "functions": [
        {"name":"mine","writes":2,"reads":0}
      ],
      "layout": [
        {"op":"compute","fn":"set","writes":[["G"]],"reads":[["A"]],"attrs":{"axis":-1}}
      ],
      "body": [
        {"op":"alloc","t":"G"},
        {"op":"share","t":"G"},
        {"op":"fork","lanes":["comm","comp",["pool",["%","rank","lanes"]]]},
        {"op":"for","i":"i","lo":0,"hi":"ranks","at":1,"body":[
          {"op":"if","p":["==","i",0],"then":[
            {"op":"copy","lane":"comm","dst":["G",[0,["%",["+","rank","i"],"ranks"]],[2,0,["/","K",2]]],"src":["A",[0,0]],"at":0}
          ]},
          {"op":"if","p":["<",["-",0,-3],"i"],"at":1,"then":[],"else":[
            {"op":"group","lane":["pool","i"],"token":3,"do":[{"op":"recv","dst":["G",[0,"i"]],"peer":"i","via":"ce_put"},{"op":"send","src":["A"],"peer":"i","tag":7,"via":"ce_get","at":0}],"at":1}
          ]},
          {"op":"wait","lane":["pool","i"],"token":[3,"i"]}
        ]},
        {"op":"send","src":["A"],"peer":["%",["+","rank",1],"ranks"],"tag":1},
        {"op":"recv","dst":["G"],"peer":0,"via":"plan"},
        {"op":"fill","dst":["G"],"value":-1},
        {"op":"collective","token":4,"kind":"broadcast","dst":["G"],"src":["A"],"root":2},
        {"op":"collective","token":5,"kind":"allreduce","dst":["G"],"src":["A"],"reduce":"max"},
        {"op":"launch","lane":"comp","plan":"allgather_direct","dst":["G"],"src":["A"]},
        {"op":"call","fn":"mine","writes":[["G"],["C"]],"reads":[]},
        {"op":"call","fn":"matmul","writes":[["C"]],"reads":[["G"],["A"]],"attrs":{"alpha":2,"n":"M"}},
        {"op":"after","lane":"comp","on":["comm","main"]},
        {"op":"join","lane":"comp","lanes":["comm"]},
        {"op":"barrier"},
        {"op":"post","flag":"ready","peer":1},
        {"op":"take","lane":"comm","flag":"turns","index":2,"peer":["min","M","K"]},
        {"op":"mark","text":"the \"end\""},
        {"op":"free","t":"G"}
      ],
      "source": [
        "a.cpp:1",
        "b.cpp:22"
      ]
    })";
}

/// Returns the lowered form of the original, with n elements per rank.
inline std::string allgather_p2p() {
  return R"({
    "params": {"n":null}, "pool": 2,
    "tensors": [
      {"name":"t0","dtype":"f32","shape":["ranks","n"],"tags":["ranks",null],"role":"in"},
      {"name":"t1","dtype":"f32","shape":["ranks","n"],"tags":["lanes",null],"role":"out","space":"window"}],
    "body": [
      {"op":"for","i":"i","lo":0,"hi":"ranks","body":[
        {"op":"after","lane":["pool",["%","i","lanes"]],"on":["main"]}]},
      {"op":"for","i":"i","lo":0,"hi":"ranks","body":[
        {"op":"if","p":["==","i","rank"],
          "then":[{"op":"copy","lane":["pool",["%","i","lanes"]],"dst":["t1",[0,"i"]],"src":["t0",[0,0]]}],
          "else":[{"op":"group","lane":["pool",["%","i","lanes"]],"token":1,"do":[
                    {"op":"recv","dst":["t1",[0,"i"]],"peer":"i"},{"op":"send","src":["t0"],"peer":"i"}]},
                  {"op":"wait","lane":["pool",["%","i","lanes"]],"token":1}]},
        {"op":"after","on":[["pool",["%","i","lanes"]]]}]}]})";
}

}  // namespace chorale::schedule
