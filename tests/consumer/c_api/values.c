/* Tests versions, status, configuration and plans, which need no world. */
#include <stddef.h>

#include "check.h"

/* Bindings in other languages contain these numbers. A change here makes another ABI. */
static void check_abi(void) {
  const int32_t statuses[] = {CHORALE_OK,     CHORALE_INVALID_ARGUMENT, CHORALE_INVALID_HANDLE,
                              CHORALE_IN_USE, CHORALE_INVALID_PLAN,     CHORALE_UNREADABLE_FILE};
  const int32_t reasons[] = {CHORALE_TIMED_OUT, CHORALE_ABORTED,   CHORALE_DEADLOCK, CHORALE_PEER_LOST,
                             CHORALE_MISMATCH,  CHORALE_RESOURCES, CHORALE_FAILED};
  const int32_t dtypes[] = {CHORALE_F32, CHORALE_F16,      CHORALE_BF16,    CHORALE_F64,
                            CHORALE_I32, CHORALE_U32,      CHORALE_I64,     CHORALE_U8,
                            CHORALE_I8,  CHORALE_FP8_E4M3, CHORALE_FP8_E5M2, CHORALE_U64,
                            CHORALE_BOOL, CHORALE_C32,     CHORALE_C64,     CHORALE_C128,
                            CHORALE_I16, CHORALE_U16};
  const int32_t ops[] = {CHORALE_OP_OF_PLAN, CHORALE_SUM, CHORALE_MIN,  CHORALE_MAX,       CHORALE_PROD,
                         CHORALE_AVG,        CHORALE_BAND, CHORALE_BOR, CHORALE_BXOR, CHORALE_PREMUL_SUM};
  const int32_t packets[] = {CHORALE_PACKET_OF_CONFIG, CHORALE_LL8, CHORALE_LL16, CHORALE_LL128};
  for (int32_t at = 0; at < 6; ++at) EXPECT(statuses[at] == at);
  for (int32_t at = 0; at < 10; ++at) EXPECT(ops[at] == at);
  for (int32_t at = 0; at < 7; ++at) EXPECT(reasons[at] == 16 + at);
  for (int32_t at = 0; at < 18; ++at) EXPECT(dtypes[at] == 1 + at);
  for (int32_t at = 0; at < 4; ++at) EXPECT(packets[at] == at);
  EXPECT(CHORALE_BACKEND_OF_CONFIG == 0 && CHORALE_CPU == 1 && CHORALE_CUDA == 2 &&
         CHORALE_CURRENT_DEVICE == -1);
  EXPECT(sizeof(chorale_arguments) == 48 && offsetof(chorale_arguments, bytes) == 24 &&
         offsetof(chorale_arguments, packet) == 40);
  EXPECT(sizeof(chorale_plan_info) == 56 && offsetof(chorale_plan_info, in_place) == 28 &&
         offsetof(chorale_plan_info, message_parts) == 48);
  EXPECT(sizeof(chorale_needs) == 32 && offsetof(chorale_needs, output_reached) == 24);
  EXPECT(sizeof(chorale_exchange_options) == 24 && offsetof(chorale_exchange_options, blocks_per_peer) == 20);
  EXPECT(sizeof(chorale_send_to) == 24 && sizeof(chorale_recv_from) == 24 &&
         offsetof(chorale_recv_from, peer) == 16);
}

void check_values(void) {
  check_abi();
  EXPECT(chorale_abi() == CHORALE_ABI);
  EXPECT(strchr(chorale_version(), '.'));
  EXPECT(strcmp(chorale_last_error(), "") == 0);
  EXPECT(strcmp(chorale_status_name(CHORALE_OK), "ok") == 0);
  EXPECT(strcmp(chorale_status_name(CHORALE_PEER_LOST), "peer_lost") == 0);
  EXPECT(strcmp(chorale_status_name(-7), "unknown") == 0);
  chorale_text_free(NULL);
}

void check_config(void) {
  chorale_config* config = NULL;
  char* text = NULL;
  OK(chorale_config_load(&config));
  OK(chorale_config_set(config, "CHORALE_TIMEOUT", "1500ms"));
  OK(chorale_config_set(config, "CHORALE_LOG_LEVEL", "off"));
  OK(chorale_config_get(config, "CHORALE_TIMEOUT", &text));
  EXPECT(strcmp(text, "1500ms") == 0);
  chorale_text_free(text);
  OK(chorale_config_describe(config, &text));
  EXPECT(strstr(text, "timeout = 1500ms  (CHORALE_TIMEOUT)\n"));
  EXPECT(strstr(text, "packet = auto  (default)\n"));
  chorale_text_free(text);

  FAILS(CHORALE_INVALID_ARGUMENT, "did you mean 'CHORALE_TIMEOUT'?",
        chorale_config_set(config, "CHORALE_TIMOUT", "1s"));
  FAILS(CHORALE_INVALID_ARGUMENT, "'soon' is no duration",
        chorale_config_set(config, "CHORALE_TIMEOUT", "soon"));
  FAILS(CHORALE_INVALID_ARGUMENT, "'value' is null", chorale_config_set(config, "CHORALE_TIMEOUT", NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "as in the environment", chorale_config_set(config, "timeout", "1s"));
  FAILS(CHORALE_INVALID_ARGUMENT, "set it before that",
        chorale_config_set(config, "CHORALE_CONFIG", "x.ini"));
  FAILS(CHORALE_INVALID_ARGUMENT, "did you mean 'CHORALE_WORKERS'?",
        chorale_config_get(config, "CHORALE_WORKER", &text));
  EXPECT(text == NULL);
  FAILS(CHORALE_INVALID_ARGUMENT, "'text' is null", chorale_config_describe(config, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "chorale_config_load: 'config' is null", chorale_config_load(NULL));
  /* The wrong calls have changed nothing. */
  OK(chorale_config_get(config, "CHORALE_TIMEOUT", &text));
  EXPECT(strcmp(text, "1500ms") == 0);
  chorale_text_free(text);

  OK(chorale_config_close(config));
  FAILS(CHORALE_INVALID_HANDLE, "has been closed", chorale_config_close(config));
  FAILS(CHORALE_INVALID_HANDLE, "has been closed", chorale_config_set(config, "CHORALE_TIMEOUT", "1s"));
}

/* Returns a plan whose first signal was replaced by a wait, which no signal answers. */
static chorale_plan* wrong_plan(chorale_plan* right) {
  chorale_plan* wrong = NULL;
  char* text = NULL;
  OK(chorale_plan_json(right, &text));
  char* const signal = strstr(text, "\"signal\"");
  EXPECT(signal);
  memcpy(signal, "\"wait\"  ", 8);
  OK(chorale_plan_read(text, strlen(text), &wrong));
  chorale_text_free(text);
  return wrong;
}

static void check_proofs(chorale_plan* right) {
  char* findings = NULL;
  OK(chorale_plan_prove(right, &findings));
  EXPECT(findings == NULL);
  chorale_plan* const wrong = wrong_plan(right);
  FAILS(CHORALE_INVALID_PLAN, "1 signal meets 2 waits", chorale_plan_prove(wrong, &findings));
  EXPECT(findings && strstr(findings, "allreduce_all_pairs.cpp:"));
  EXPECT(strstr(chorale_last_error(), findings));
  chorale_text_free(findings);
  FAILS(CHORALE_INVALID_PLAN, "1 signal meets 2 waits", chorale_plan_prove(wrong, NULL));
  OK(chorale_plan_close(wrong));
}

static void check_sizes(chorale_plan* plan) {
  chorale_plan_info info = {sizeof info, NULL, NULL, 0, 0, 0, 0, 0};
  OK(chorale_plan_describe(plan, &info));
  EXPECT(strcmp(info.name, "allreduce_all_pairs") == 0 && strcmp(info.collective, "allreduce") == 0);
  EXPECT(info.struct_bytes == sizeof info && info.ranks == 4 && info.in_place == 0 &&
         info.message_parts == 1);
  EXPECT(info.max_message_bytes > (uint64_t)1 << 40);
  info.struct_bytes = 8;
  FAILS(CHORALE_INVALID_ARGUMENT, "struct_bytes of 'info' is 8", chorale_plan_describe(plan, &info));

  uint64_t in = 0, out = 0;
  OK(chorale_plan_message_sizes(plan, (uint64_t)5 << 30, CHORALE_BF16, &in, &out));
  EXPECT(in == (uint64_t)5 << 30 && out == in);
  FAILS(CHORALE_INVALID_ARGUMENT, "3 bytes are no multiple of",
        chorale_plan_message_sizes(plan, 3, CHORALE_BF16, &in, &out));
  EXPECT(in == 0 && out == 0);
  FAILS(CHORALE_INVALID_ARGUMENT, "dtype 19 is not one of", chorale_plan_message_sizes(plan, 4, 19, &in, &out));
  FAILS(CHORALE_INVALID_ARGUMENT, "dtype 0 is not one of", chorale_plan_message_sizes(plan, 4, 0, &in, &out));
  FAILS(CHORALE_INVALID_ARGUMENT, "dtype -2147483648",
        chorale_plan_message_sizes(plan, 4, INT32_MIN, &in, &out));

  chorale_needs needs = {sizeof needs, 0, 0, 0, 0, 0};
  OK(chorale_plan_needs(plan, 3, 4096, CHORALE_F32, &needs));
  EXPECT(needs.thread_blocks > 0 && needs.input_reached == 1 && needs.output_reached == 1 &&
         needs.scratch_bytes == 0);
  FAILS(CHORALE_INVALID_ARGUMENT, "no rank 4 in plan", chorale_plan_needs(plan, 4, 4096, CHORALE_F32, &needs));
  FAILS(CHORALE_INVALID_ARGUMENT, "'needs' is null", chorale_plan_needs(plan, 0, 4096, CHORALE_F32, NULL));
}

void check_plans(const char* file) {
  const char* const settings[] = {"instances=2"};
  const char* const wrong[] = {"instances"};
  const char* const ranks_again[] = {"ranks=4"};
  chorale_plan *plan = NULL, *loaded = NULL, *again = NULL;
  char *text = NULL, *same = NULL;
  OK(chorale_plan_load(file, &loaded));
  OK(chorale_plan_json(loaded, &text));
  OK(chorale_plan_read(text, strlen(text), &again));
  OK(chorale_plan_close(loaded));
  OK(chorale_plan_json(again, &same));
  EXPECT(strcmp(text, same) == 0);
  FAILS(CHORALE_INVALID_PLAN, "is not JSON", chorale_plan_read(text, 50, &plan));
  EXPECT(plan == NULL);
  FAILS(CHORALE_INVALID_ARGUMENT, "'data' is null", chorale_plan_read(NULL, 50, &plan));
  chorale_text_free(text);
  chorale_text_free(same);
  OK(chorale_plan_close(again));
  FAILS(CHORALE_INVALID_HANDLE, "of a plan has been closed", chorale_plan_close(again));
  FAILS(CHORALE_UNREADABLE_FILE, "/no/such/plan.json", chorale_plan_load("/no/such/plan.json", &plan));

  OK(chorale_plan_make("allreduce_all_pairs", 4, settings, 1, &plan));
  FAILS(CHORALE_INVALID_ARGUMENT, "no program 'allreduce_all'",
        chorale_plan_make("allreduce_all", 4, NULL, 0, &again));
  FAILS(CHORALE_INVALID_ARGUMENT, "'ranks' is -1",
        chorale_plan_make("allreduce_all_pairs", -1, NULL, 0, &again));
  FAILS(CHORALE_INVALID_ARGUMENT, "not have the form instances=16",
        chorale_plan_make("allreduce_all_pairs", 4, wrong, 1, &again));
  FAILS(CHORALE_INVALID_ARGUMENT, "'ranks' is 4 among the settings",
        chorale_plan_make("allreduce_ring", 2, ranks_again, 1, &again));
  FAILS(CHORALE_INVALID_ARGUMENT, "'settings' is null",
        chorale_plan_make("allreduce_all_pairs", 4, NULL, 1, &again));
  FAILS(CHORALE_INVALID_HANDLE, "the handle of a plan is null", chorale_plan_json(NULL, &text));
  FAILS(CHORALE_INVALID_HANDLE, "0x7ffffff is not a handle of a plan",
        chorale_plan_json((chorale_plan*)0x7ffffff, &text));
  FAILS(CHORALE_INVALID_HANDLE, "is of a plan, but one of a world is needed",
        chorale_world_close((chorale_world*)plan));
  check_proofs(plan);
  check_sizes(plan);
  OK(chorale_plan_close(plan));
}

void check_tuned_plans(void) {
  chorale_tuned_plans *plans = NULL, *none = NULL;
  chorale_plan *plan = NULL, *same = NULL, *missing = NULL;
  chorale_packet packet = -1;
  char* text = NULL;
  OK(chorale_tuned_plans_open(NULL, NULL, 3, CHORALE_CPU, NULL, 0, &plans));
  OK(chorale_tuned_plans_choose(plans, "allreduce", 1 << 20, CHORALE_F32, &plan, &packet));
  EXPECT(packet >= CHORALE_PACKET_OF_CONFIG && packet <= CHORALE_LL128);
  OK(chorale_tuned_plans_choose(plans, "allreduce", 1 << 20, CHORALE_F32, &same, NULL));
  EXPECT(plan != same);
  OK(chorale_plan_close(plan));
  OK(chorale_tuned_plans_set_max_blocks(plans, 1));
  OK(chorale_tuned_plans_explain(plans, "allreduce", 1 << 20, CHORALE_F32, &text));
  EXPECT(strstr(text, "allreduce_one_shot, the default within 1 block: nothing is tuned for it"));
  chorale_text_free(text);
  OK(chorale_tuned_plans_set_max_blocks(plans, 0));
  FAILS(CHORALE_INVALID_ARGUMENT, "max_blocks is -1", chorale_tuned_plans_set_max_blocks(plans, -1));
  OK(chorale_tuned_plans_explain(plans, "allreduce", 1 << 20, CHORALE_F32, &text));
  EXPECT(strstr(text, "allreduce_") == text && strstr(text, "the default: nothing is tuned for it"));
  chorale_text_free(text);
  FAILS(CHORALE_INVALID_ARGUMENT, "reduce_all",
        chorale_tuned_plans_choose(plans, "reduce_all", 64, CHORALE_F32, &missing, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "dtype 99", chorale_tuned_plans_explain(plans, "allreduce", 64, 99, &text));
  FAILS(CHORALE_INVALID_ARGUMENT, "0 ranks",
        chorale_tuned_plans_open(NULL, NULL, 0, CHORALE_CPU, NULL, 0, &none));
  FAILS(CHORALE_INVALID_ARGUMENT, "backend 3 is not one of",
        chorale_tuned_plans_open(NULL, NULL, 2, 3, NULL, 0, &none));
  FAILS(CHORALE_INVALID_ARGUMENT, "not 0", chorale_tuned_plans_open(NULL, NULL, 2, 0, NULL, 0, &none));
  FAILS(CHORALE_INVALID_ARGUMENT, "rank_order is 2",
        chorale_tuned_plans_open(NULL, NULL, 2, CHORALE_CPU, NULL, 2, &none));
  FAILS(CHORALE_UNREADABLE_FILE, "/no/table.json",
        chorale_tuned_plans_open("/no/table.json", NULL, 2, CHORALE_CPU, NULL, 0, &none));
  EXPECT(none == NULL);
  FAILS(CHORALE_INVALID_HANDLE, "of a tuned_plans is null", chorale_tuned_plans_close(none));
  OK(chorale_tuned_plans_close(plans));
  OK(chorale_plan_json(same, &text)); /* the plan stays alive for its other handles */
  EXPECT(strstr(text, "allreduce_"));
  chorale_text_free(text);
  OK(chorale_plan_close(same));
}
