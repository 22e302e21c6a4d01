#include "membership.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

namespace chorale::bootstrap {

Membership Membership::of(std::string name, const std::vector<Hello>& ranks) {
  Membership membership{.name = std::move(name), .hosts = {}, .host_names = {}};
  std::vector<const Host*> hosts;
  for (const Hello& hello : ranks) {
    const auto at = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const Host* host) { return host->shares_memory_with(hello.host); });
    membership.hosts.push_back(uint32_t(at - hosts.begin()));
    if (at != hosts.end()) continue;
    hosts.push_back(&hello.host);
    membership.host_names.push_back(hello.host.label.empty() ? hello.host.name : hello.host.label);
  }
  return membership;
}

Membership Membership::of_one_host(std::string name, int ranks) {
  return {
      .name = std::move(name), .hosts = std::vector<uint32_t>(size_t(ranks), 0), .host_names = {"this host"}};
}

int Membership::lowest_rank(uint32_t host) const {
  return int(std::find(hosts.begin(), hosts.end(), host) - hosts.begin());
}

// The lines are the name, "threads" or "processes", the hosts of the ranks, and then one host name per line.
std::string Membership::encode() const {
  std::ostringstream text;
  text << name << '\n' << (one_process ? "threads" : "processes") << '\n' << hosts.size();
  for (const uint32_t host : hosts) text << ' ' << host;
  text << '\n';
  for (const std::string& one : host_names) text << one << '\n';
  return text.str();
}

std::optional<Membership> Membership::decode(const std::string& text) {
  std::istringstream lines(text);
  Membership membership;
  std::getline(lines, membership.name);
  std::string kind;
  std::getline(lines, kind);
  membership.one_process = kind == "threads";
  if (!membership.one_process && kind != "processes") return std::nullopt;
  size_t ranks = 0;
  lines >> ranks;
  for (uint32_t host = 0; membership.hosts.size() < ranks && lines >> host;) membership.hosts.push_back(host);
  lines.ignore(1);
  for (std::string one; std::getline(lines, one);) membership.host_names.push_back(one);
  const auto named = [&](uint32_t host) { return host < membership.host_names.size(); };
  if (ranks == 0 || membership.hosts.size() != ranks ||
      !std::all_of(membership.hosts.begin(), membership.hosts.end(), named))
    return std::nullopt;
  return membership;
}

}  // namespace chorale::bootstrap
