#include "hello.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "executor/system/texts.hpp"

#ifndef CHORALE_VERSION
#error "the build defines CHORALE_VERSION for this file"
#endif

namespace chorale::bootstrap {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Host this_host() {
  Host host;
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  host.name = name;
  host.boot = first_line("/proc/sys/kernel/random/boot_id");
  struct stat memory {
  }, processes{};
  stat("/dev/shm", &memory);
  stat("/proc/self/ns/pid", &processes);
  host.shared = fmt::format("{:x}:{:x}", memory.st_dev, processes.st_ino);
  host.user = std::to_string(getuid());
  return host;
}

}  // namespace

std::string Hello::process_text() const { return fmt::format("pid {} on {}", pid, host.name); }

Hello hello_of(int rank, int ranks, const std::string& label) {
  Hello hello{CHORALE_VERSION, rank, ranks, int(getpid()), this_host()};
  hello.host.label = label;
  return hello;
}

// Each field has a line, and the version is first. Later versions must keep the first line.
std::string encode(const Hello& hello) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", hello.version, hello.rank, hello.ranks,
                     hello.pid, hello.host.name, hello.host.boot, hello.host.shared, hello.host.user,
                     hello.host.label);
}

std::optional<Hello> decode_hello(const std::string& text) {
  std::istringstream lines(text);
  Hello hello;
  if (!std::getline(lines, hello.version)) return std::nullopt;
  lines >> hello.rank >> hello.ranks >> hello.pid;
  lines.ignore(1);
  Host& host = hello.host;
  for (std::string* field : {&host.name, &host.boot, &host.shared, &host.user, &host.label})
    std::getline(lines, *field);
  // Messages show these fields, so replace characters that are not printable.
  for (std::string* field : {&hello.version, &host.name, &host.user, &host.label})
    std::replace_if(
        field->begin(), field->end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return hello;
}

std::string why_apart(const std::vector<Hello>& ranks) {
  const Host& first = ranks.front().host;
  std::vector<std::pair<const Host*, std::vector<int>>> places;
  for (const Hello& hello : ranks) {
    // Different labels or machines mean several hosts, which is no error.
    if (hello.host.boot != first.boot || hello.host.label != first.label) return {};
    const auto at = std::find_if(places.begin(), places.end(), [&](const auto& place) {
      return place.first->shares_memory_with(hello.host);
    });
    if (at != places.end()) {
      at->second.push_back(hello.rank);
    } else {
      places.push_back({&hello.host, {hello.rank}});
    }
  }
  if (places.size() < 2) return {};
  std::string list;
  for (const auto& [host, of_it] : places) {
    list += fmt::format("{}{} ({}, user {})", list.empty() ? "" : ", ", host->name, system::ranks_text(of_it),
                        host->user);
  }
  return fmt::format(
      "the ranks are on one machine but share no memory: {}; run them as one user in one container, or the "
      "containers with --ipc=host --pid=host",
      list);
}

namespace {

/// Returns whether two ranks are threads of one process. Both are connected, so neither has ended.
bool share_process(const Hello& one, const Hello& other) {
  return one.pid == other.pid && one.host.shares_memory_with(other.host);
}

}  // namespace

bool in_one_process(const std::vector<Hello>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const Hello& hello) { return share_process(hello, ranks.front()); });
}

std::string why_no_invitation(const std::vector<Hello>& ranks) {
  const Hello& first = ranks.front();
  for (const Hello& hello : ranks) {
    if (hello.host.shares_memory_with(first.host)) continue;
    const auto name = [](const Host& host) { return host.label.empty() ? host.name : host.label; };
    return fmt::format(
        "rank {} is on host {} and rank {} on host {}: an invitation makes a world of one host; ranks of "
        "several hosts join at tcp://host:port",
        first.rank, name(first.host), hello.rank, name(hello.host));
  }
  if (in_one_process(ranks)) return {};
  for (const Hello& hello : ranks) {
    std::vector<int> together;
    for (const Hello& other : ranks) {
      if (share_process(hello, other)) together.push_back(other.rank);
    }
    if (together.size() < 2) continue;
    return fmt::format(
        "{} has {} of {}: either all ranks are threads of one process, or each is a process of its own",
        hello.process_text(), system::ranks_text(together), ranks.size());
  }
  return {};
}

}  // namespace chorale::bootstrap
