// Refreshes parts of operator pages, and follows the log of a run. Without it, pages can be reloaded.
"use strict";

(() => {
  const refreshed = document.getElementById("refreshed");
  if (!refreshed) return;
  const log = document.getElementById("log");
  let stream = null;

  const announce = (words) => {
    const target = document.getElementById("announcer");
    if (words && target) target.textContent = words;
  };

  const isInUse = (part) => {
    const chosen = getSelection();
    return part.contains(document.activeElement) || (!chosen.isCollapsed && part.contains(chosen.anchorNode));
  };

  const replace = (current, updated) => {
    const open = [...current.querySelectorAll("details")].map((each) => each.open);
    [...updated.querySelectorAll("details")].forEach((each, index) => {
      if (index < open.length) each.open = open[index];
    });
    if (current.dataset.announce !== updated.dataset.announce) announce(updated.dataset.announce);
    current.replaceWith(document.adoptNode(updated));
  };

  const refresh = async () => {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) return;
    const updated = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const current of document.querySelectorAll("[data-live]")) {
      const part = updated.getElementById(current.id);
      if (part && !current.isEqualNode(part) && !isInUse(current)) replace(current, part);
    }
    refreshed.dataset.every = updated.getElementById("refreshed")?.dataset.every ?? "0";
  };

  const wait = () => {
    const every = Number(refreshed.dataset.every);
    if (!every) return;
    setTimeout(async () => {
      try {
        if (!document.hidden) await refresh();
      } catch {
        refreshed.dataset.every = "30"; // the server is unavailable; try again later
      }
      wait();
    }, every * 1000);
  };

  const makeElement = (name, text, kind = "") => {
    const element = document.createElement(name);
    element.textContent = text;
    element.className = kind;
    return element;
  };

  const oneLine = (value) => (typeof value === "string" ? value : JSON.stringify(value)).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, " ");

  const write = ({ logged_at: at, level, message, context }) => {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const time = makeElement("time", at.slice(11, 19));
    time.dateTime = at;
    const line = makeElement("p", "", `line ${level}`);
    line.append(time, " ", makeElement("span", level, "level"), " ", makeElement("bdi", oneLine(message)));
    const more = Object.entries(context ?? {}).map(([name, value]) => `${name}=${oneLine(value)}`);
    if (more.length) line.append(" ", makeElement("bdi", more.join(" "), "soft"));
    log.querySelector(".none")?.remove();
    log.append(line);
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  };

  const count = (counts) => {
    for (const [name, value] of Object.entries(counts)) {
      const target = document.querySelector(`[data-count="${name}"]`);
      if (target) target.textContent = value.toLocaleString("en-US");
    }
  };

  const follow = () => {
    stream = new EventSource(`${log.dataset.events}?after=${log.dataset.last}`);
    stream.addEventListener("log", (event) => write(JSON.parse(event.data)));
    stream.addEventListener("counts", (event) => count(JSON.parse(event.data).counts));
    stream.addEventListener("end", (event) => {
      stream.close();
      announce(`The run has ended: ${JSON.parse(event.data).status}`);
      refresh().catch(() => {});
    });
  };

  if (log) log.scrollTop = log.scrollHeight;
  if (log?.dataset.events) follow();
  window.addEventListener("pagehide", () => stream?.close());
  wait();
})();
