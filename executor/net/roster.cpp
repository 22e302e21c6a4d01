#include "roster.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

namespace chorale::net {

Roster Roster::of(std::string name, const std::vector<Hello>& ranks) {
  Roster roster{std::move(name), {}, {}};
  std::vector<const Host*> hosts;
  for (const Hello& hello : ranks) {
    const auto at = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const Host* host) { return host->shares_memory_with(hello.host); });
    roster.hosts.push_back(uint32_t(at - hosts.begin()));
    if (at != hosts.end()) continue;
    hosts.push_back(&hello.host);
    roster.host_names.push_back(hello.host.label.empty() ? hello.host.name : hello.host.label);
  }
  return roster;
}

Roster Roster::of_one_host(std::string name, int ranks) {
  return {std::move(name), std::vector<uint32_t>(size_t(ranks), 0), {"this host"}};
}

int Roster::lowest_rank(uint32_t host) const {
  return int(std::find(hosts.begin(), hosts.end(), host) - hosts.begin());
}

// The lines are the name, the hosts of the ranks, and then one host name per line.
std::string Roster::encode() const {
  std::ostringstream text;
  text << name << '\n' << hosts.size();
  for (const uint32_t host : hosts) text << ' ' << host;
  text << '\n';
  for (const std::string& one : host_names) text << one << '\n';
  return text.str();
}

std::optional<Roster> Roster::decode(const std::string& text) {
  std::istringstream lines(text);
  Roster roster;
  std::getline(lines, roster.name);
  size_t ranks = 0;
  lines >> ranks;
  for (uint32_t host = 0; roster.hosts.size() < ranks && lines >> host;) roster.hosts.push_back(host);
  lines.ignore(1);
  for (std::string one; std::getline(lines, one);) roster.host_names.push_back(one);
  const auto named = [&](uint32_t host) { return host < roster.host_names.size(); };
  if (ranks == 0 || roster.hosts.size() != ranks ||
      !std::all_of(roster.hosts.begin(), roster.hosts.end(), named))
    return std::nullopt;
  return roster;
}

}  // namespace chorale::net
