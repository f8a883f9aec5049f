// SPDX-License-Identifier: Apache-2.0
#include "validate/runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>

#include "validate/fault.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr int kReportFile = 3, kCrumbFile = 4;
constexpr size_t kTail = 2000;  // bytes kept of what a child prints
constexpr const char* kSubjects = ":subjects";

bool matches(const std::string& glob, std::string_view text) {
  return ::fnmatch(glob.c_str(), std::string(text).c_str(), 0) == 0;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One test on one subject.
struct Job {
  const Test* test;
  Subject subject;
};

// In the order in which a child does them.
std::vector<Job> jobs_of(const std::string& name, const std::vector<Subject>& subjects,
                         const Selection& s) {
  std::vector<Job> jobs;
  for (const Test& t : all_tests()) {
    if (t.name != name) continue;
    for (const Subject& subject : subjects)
      if (subject.kind == t.kind && (t.kind == Kind::plugin || matches(s.op, subject.id)))
        jobs.push_back({&t, subject});
  }
  return jobs;
}

std::vector<std::string> selected_names(const Selection& s) {
  std::vector<std::string> names;
  for (const Test& t : all_tests())
    if (t.level <= s.level && matches(s.test, t.name) &&
        std::find(names.begin(), names.end(), t.name) == names.end())
      names.emplace_back(t.name);
  return names;
}

Outcome run_one(Session& session, const Job& job) {
  Outcome o;
  o.test = job.test->name;
  o.level = job.test->level;
  o.subject = job.subject;
  const auto start = Clock::now();
  Context ctx(session, job.test->name, job.subject);
  ctx.at(job.subject.id);
  try {
    job.test->run(ctx, job.subject);
  } catch (const Failure& f) {
    o.state = State::failed;
    o.text = f.text;
  } catch (const Skip& s) {
    o.state = State::skipped;
    o.text = s.reason;
  } catch (const std::exception& e) {
    o.state = State::failed;
    o.text = e.what();
  }
  o.notes = ctx.notes();
  o.seconds = seconds_since(start);
  return o;
}

void send(const Json& message) {
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t n = ::write(kReportFile, line.data() + at, line.size() - at);
    if (n < 0 && errno != EINTR) ::_exit(1);
    if (n > 0) at += static_cast<size_t>(n);
  }
}

// A running child, seen by its parent.
struct Child {
  std::string test;
  std::vector<Job> jobs;
  size_t next = 0;  // the job that it works on, or will
  pid_t pid = -1;
  int report = -1, output = -1;
  char* crumb = nullptr;
  std::string pending, tail;
  bool working = false, done = false;
  std::string error;  // what kept it from starting
  Clock::time_point last{};

  void close() {
    if (report >= 0) ::close(report);
    if (output >= 0) ::close(output);
    if (crumb) ::munmap(crumb, Session::kCrumbSize);
    report = output = -1;
    crumb = nullptr;
  }
};

[[noreturn]] void system_failure(const char* what) {
  trellis::fail(ErrorKind::internal,
                fmt::format("[validate] cannot make {}: {}", what, std::strerror(errno)));
}

// The forked side, up to exec.
[[noreturn]] void become_child(std::vector<std::string> command, int report, int output,
                               int crumb) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Away from the numbers they shall get.
  report = ::fcntl(report, F_DUPFD, 10);
  output = ::fcntl(output, F_DUPFD, 10);
  crumb = ::fcntl(crumb, F_DUPFD, 10);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  ::dup2(report, kReportFile);
  ::dup2(crumb, kCrumbFile);
  for (int fd = kCrumbFile + 1; fd < 64; ++fd) ::close(fd);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

void start(Child& c, const Selection& s) {
  int report[2], output[2];
  if (::pipe2(report, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) system_failure("a pipe");
  const int crumb = ::memfd_create("crumb", MFD_CLOEXEC);
  if (crumb < 0 || ::ftruncate(crumb, Session::kCrumbSize) != 0) system_failure("shared memory");
  void* shared = ::mmap(nullptr, Session::kCrumbSize, PROT_READ | PROT_WRITE, MAP_SHARED, crumb, 0);
  if (shared == MAP_FAILED) system_failure("shared memory");
  std::vector<std::string> command = s.command;
  for (const char* option : {"--child", c.test.c_str(), "--child-from"})
    command.emplace_back(option);
  command.push_back(std::to_string(c.next));
  std::fflush(stdout);
  c.pid = ::fork();
  if (c.pid < 0) system_failure("a process");
  if (c.pid == 0) become_child(command, report[1], output[1], crumb);
  ::setpgid(c.pid, c.pid);
  ::close(report[1]);
  ::close(output[1]);
  ::close(crumb);
  c.report = report[0];
  c.output = output[0];
  ::fcntl(c.report, F_SETFL, O_NONBLOCK);
  ::fcntl(c.output, F_SETFL, O_NONBLOCK);
  c.crumb = static_cast<char*>(shared);
  c.pending.clear();
  c.tail.clear();
  c.error.clear();
  c.working = c.done = false;
  c.last = Clock::now();
}

// Everything that is there; false: the other end was closed.
bool drain(int fd, std::string& to, size_t keep) {
  char bytes[4096];
  for (;;) {
    const ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n > 0) {
      to.append(bytes, static_cast<size_t>(n));
      if (keep && to.size() > 2 * keep) to.erase(0, to.size() - keep);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && errno == EAGAIN;
  }
}

class Parent {
 public:
  Parent(const Selection& selection,
         const std::function<void(size_t, size_t, const std::string&)>& progress)
      : s_(selection), progress_(progress) {}

  Report run(const std::string& plugin_id) {
    const auto start_time = Clock::now();
    list_subjects(plugin_id);
    for (const std::string& name : selected_names(s_)) {
      Child c;
      c.test = name;
      c.jobs = jobs_of(name, report_.subjects, s_);
      all_ += c.jobs.size();
      if (!c.jobs.empty()) waiting_.push_back(std::move(c));
    }
    while (!waiting_.empty() || !running_.empty()) {
      while (!waiting_.empty() && running_.size() < std::max(1u, s_.jobs)) {
        running_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
        start(running_.back(), s_);
      }
      wait_for_some();
    }
    report_.seconds = seconds_since(start_time);
    return std::move(report_);
  }

 private:
  void list_subjects(const std::string& plugin_id) {
    report_.subjects = {{Kind::plugin, plugin_id}};
    Child c;
    c.test = kSubjects;
    running_.push_back(std::move(c));
    start(running_.back(), s_);
    while (!running_.empty()) wait_for_some();
  }

  void wait_for_some() {
    std::vector<pollfd> files;
    auto first = Clock::now() + std::chrono::hours(1);
    for (const Child& c : running_) {
      files.push_back({c.report, POLLIN, 0});
      files.push_back({c.output, POLLIN, 0});
      first = std::min(first, limit_of(c));
    }
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now());
    ::poll(files.data(), files.size(),
           static_cast<int>(std::clamp<int64_t>(wait.count() + 1, 0, 60000)));
    for (size_t i = 0; i < running_.size();) {
      Child& c = running_[i];
      drain(c.output, c.tail, kTail);
      const bool open = drain(c.report, c.pending, 0);
      read_messages(c);
      const bool late = !c.done && Clock::now() >= limit_of(c);
      if (open && !late) {
        ++i;
        continue;
      }
      if (late) ::kill(-c.pid, SIGKILL);
      finish(c, late);
      if (!c.done && c.next < c.jobs.size() && c.error.empty()) {
        start(c, s_);
        ++i;
      } else {
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  Clock::time_point limit_of(const Child& c) const {
    return c.last + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(s_.time_limit));
  }

  void read_messages(Child& c) {
    size_t end;
    while ((end = c.pending.find('\n')) != std::string::npos) {
      const Json m = Json::parse(c.pending.substr(0, end), nullptr, false);
      c.pending.erase(0, end + 1);
      c.last = Clock::now();
      // The plugin may write there, too; what does not parse is nothing of ours.
      if (!m.is_object()) continue;
      if (m.contains("subject"))
        report_.subjects.push_back({static_cast<Kind>(m["kind"].get<int>()), m["subject"]});
      if (m.contains("start")) {
        c.working = true;
        if (c.next < c.jobs.size())
          progress_(done_, all_, c.test + " " + c.jobs[c.next].subject.id);
      }
      if (m.contains("state")) take_outcome(c, m);
      if (m.contains("error")) c.error = m["error"];
      if (m.contains("done")) c.done = true;
    }
  }

  void take_outcome(Child& c, const Json& m) {
    if (c.next >= c.jobs.size()) return;
    Outcome o;
    o.state = static_cast<State>(m["state"].get<int>());
    o.text = m["text"];
    o.notes = m["notes"].get<std::vector<std::string>>();
    o.seconds = m["seconds"];
    add(c, std::move(o));
    c.working = false;
  }

  void add(Child& c, Outcome o) {
    o.test = c.test;
    o.level = c.jobs[c.next].test->level;
    o.subject = c.jobs[c.next].subject;
    if (o.state == State::failed) o.output = c.tail;
    c.tail.clear();
    report_.outcomes.push_back(std::move(o));
    ++c.next;
    ++done_;
  }

  // The child ended, or is being killed.
  void finish(Child& c, bool late) {
    int status = 0;
    while (::waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {
    }
    ::kill(-c.pid, SIGKILL);  // what it started
    drain(c.output, c.tail, kTail);
    if (c.tail.size() > kTail) c.tail.erase(0, c.tail.size() - kTail);
    std::string how;
    if (late) {
      how = fmt::format("hung: no answer in {:g} s", s_.time_limit);
    } else if (WIFSIGNALED(status)) {
      const char* name = ::sigabbrev_np(WTERMSIG(status));
      how = fmt::format("crashed: SIG{}", name ? name : std::to_string(WTERMSIG(status)));
    } else if (!c.done) {
      how = fmt::format("ended the process: exit code {}", WEXITSTATUS(status));
    }
    std::string doing(c.crumb, ::strnlen(c.crumb, Session::kCrumbSize / 2));
    const char* why = c.crumb + Session::kCrumbSize / 2;
    if (*why) how += fmt::format(" {}", std::string(why, ::strnlen(why, Session::kCrumbSize / 2)));
    const bool listed = c.test == kSubjects;
    if (c.done || listed) {
      c.done = true;  // what the library cannot list is found by the tests of loading
    } else if (!c.error.empty()) {
      // It could not open the plugin: true of every subject.
      while (c.next < c.jobs.size()) {
        Outcome o;
        o.state = State::failed;
        o.text = c.error;
        add(c, std::move(o));
      }
    } else if (c.next < c.jobs.size()) {
      Outcome o;
      o.state = State::failed;
      o.is_fatal = true;
      o.seconds = seconds_since(c.last);
      o.text = doing.empty() ? how : fmt::format("{}, in {}", how, doing);
      add(c, std::move(o));
    }
    c.close();
  }

  const Selection& s_;
  const std::function<void(size_t, size_t, const std::string&)>& progress_;
  std::deque<Child> waiting_;
  std::vector<Child> running_;
  Report report_;
  size_t done_ = 0, all_ = 0;
};

// In the order of the tables and of all_tests(), whatever ran first.
void by_subject(Report& report) {
  const auto turn = [](const Outcome& o) {
    return std::find_if(all_tests().begin(), all_tests().end(),
                        [&](const Test& t) { return t.name == o.test; });
  };
  const auto place = [&report](const Outcome& o) {
    return std::find_if(report.subjects.begin(), report.subjects.end(), [&](const Subject& s) {
      return s.kind == o.subject.kind && s.id == o.subject.id;
    });
  };
  std::stable_sort(report.outcomes.begin(), report.outcomes.end(),
                   [&](const Outcome& a, const Outcome& b) {
                     const auto at = place(a), bt = place(b);
                     return at != bt ? at < bt : turn(a) < turn(b);
                   });
}

}  // namespace

size_t Report::count(State state) const {
  return static_cast<size_t>(std::count_if(outcomes.begin(), outcomes.end(),
                                           [state](const Outcome& o) { return o.state == state; }));
}

bool Report::has_fatal() const {
  return std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.is_fatal; });
}

Report run_tests(Session& session, const Selection& selection,
                 const std::function<void(size_t, size_t, const std::string&)>& progress) {
  Report report;
  if (!selection.in_process) {
    report = Parent(selection, progress).run(session.plugin.id);
  } else {
    const auto start_time = Clock::now();
    std::optional<std::string> error;
    try {
      report.subjects = session.subjects();
    } catch (const Failure& f) {
      report.subjects = {{Kind::plugin, session.plugin.id}};
    }
    const auto names = selected_names(selection);
    size_t done = 0;
    for (const std::string& name : names) {
      for (const Job& job : jobs_of(name, report.subjects, selection)) {
        progress(done, names.size(), name + " " + job.subject.id);
        report.outcomes.push_back(run_one(session, job));
      }
      ++done;
    }
    report.seconds = seconds_since(start_time);
  }
  by_subject(report);
  return report;
}

int run_child(Session& session, const Selection& selection, const std::string& test, size_t from) {
  void* shared =
      ::mmap(nullptr, Session::kCrumbSize, PROT_READ | PROT_WRITE, MAP_SHARED, kCrumbFile, 0);
  if (shared == MAP_FAILED) return 1;
  session.crumb = static_cast<char*>(shared);
  ::fcntl(kReportFile, F_SETFD, FD_CLOEXEC);
  explain_faults(session.crumb + Session::kCrumbSize / 2, Session::kCrumbSize / 2);

  std::vector<Subject> subjects{{Kind::plugin, session.plugin.id}};
  const bool lists = test == kSubjects;
  bool needs_list = lists;
  for (const Test& t : all_tests()) needs_list |= t.name == test && t.kind != Kind::plugin;
  if (needs_list) {
    try {
      subjects = session.subjects();
    } catch (const Failure& f) {
      send({{"error", f.text}});
      ::_exit(1);
    }
  }
  if (lists) {
    for (size_t i = 1; i < subjects.size(); ++i)
      send({{"subject", subjects[i].id}, {"kind", static_cast<int>(subjects[i].kind)}});
  } else {
    const std::vector<Job> jobs = jobs_of(test, subjects, selection);
    for (size_t i = from; i < jobs.size(); ++i) {
      send({{"start", jobs[i].subject.id}});
      const Outcome o = run_one(session, jobs[i]);
      send({{"state", static_cast<int>(o.state)},
            {"text", o.text},
            {"notes", o.notes},
            {"seconds", o.seconds}});
    }
  }
  send({{"done", true}});
  std::fflush(nullptr);
  // Neither fini nor destructors: load.init and load.process look at those.
  ::_exit(0);
}

}  // namespace trellis::validate
