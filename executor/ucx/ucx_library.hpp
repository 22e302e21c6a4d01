/// \file
/// UcxLibrary loads UCX when the first world needs it.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#include <string>

namespace chorale::ucx {

/// Holds UCX's functions. They are loaded by name, so that applications on one host do not load UCX. UCX
/// handles signals of the process as soon as it is loaded, and not every machine has it.
class UcxLibrary {
 public:
  /// Returns the loaded library.
  /// \throws RunError other if it does not load
  static const UcxLibrary& get();

  /// Returns why get() would throw; "" if it would not.
  static const std::string& problem();

#define CHORALE_UCX_FUNCTIONS(F) \
  F(ucp_am_recv_data_nbx) \
  F(ucp_am_send_nbx) \
  F(ucp_cleanup) \
  F(ucp_config_modify) \
  F(ucp_config_read) \
  F(ucp_config_release) \
  F(ucp_ep_close_nbx) \
  F(ucp_ep_create) \
  F(ucp_init_version) \
  F(ucp_request_check_status) \
  F(ucp_request_free) \
  F(ucp_worker_arm) \
  F(ucp_worker_create) \
  F(ucp_worker_destroy) \
  F(ucp_worker_flush_nbx) \
  F(ucp_worker_get_address) \
  F(ucp_worker_get_efd) \
  F(ucp_worker_progress) \
  F(ucp_worker_release_address) \
  F(ucp_worker_set_am_recv_handler) \
  F(ucp_worker_signal) \
  F(ucs_log_push_handler) \
  F(ucs_status_string)

#define CHORALE_UCX_MEMBER(name) decltype(&::name) name = nullptr;
  CHORALE_UCX_FUNCTIONS(CHORALE_UCX_MEMBER)
#undef CHORALE_UCX_MEMBER

 private:
  static UcxLibrary& instance();
  UcxLibrary();
  std::string load();

  std::string problem_;
};

/// Sends UCX's log messages of this thread to our log while it lives.
class UcxTalk {
 public:
  UcxTalk();
  ~UcxTalk();
  UcxTalk(const UcxTalk&) = delete;
};

}  // namespace chorale::ucx
