// Without this file pages are loaded again to see what has changed; with it, parts of them change
// by themselves, and the log of a run is followed as it is written.
"use strict";

(() => {
  const room = document.getElementById("room");
  if (!room) return;
  const log = document.getElementById("log");
  let stream = null;

  const say = (words) => {
    const place = document.getElementById("said");
    if (words && place) place.textContent = words;
  };

  const isInUse = (part) => {
    const chosen = getSelection();
    return part.contains(document.activeElement) || (!chosen.isCollapsed && part.contains(chosen.anchorNode));
  };

  const put = (held, fresh) => {
    const open = [...held.querySelectorAll("details")].map((each) => each.open);
    [...fresh.querySelectorAll("details")].forEach((each, place) => {
      if (place < open.length) each.open = open[place];
    });
    if (held.dataset.says !== fresh.dataset.says) say(fresh.dataset.says);
    held.replaceWith(document.adoptNode(fresh));
  };

  const look = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const held of document.querySelectorAll("[data-live]")) {
      const part = fresh.getElementById(held.id);
      if (part && !held.isEqualNode(part) && !isInUse(held)) put(held, part);
    }
    room.dataset.every = fresh.getElementById("room")?.dataset.every ?? "0";
  };

  const wait = () => {
    const every = Number(room.dataset.every);
    if (!every) return;
    setTimeout(async () => {
      try {
        if (!document.hidden) await look();
      } catch {
        room.dataset.every = "30"; // the server is away; it comes back
      }
      wait();
    }, every * 1000);
  };

  const made = (name, text, kind = "") => {
    const element = document.createElement(name);
    element.textContent = text;
    element.className = kind;
    return element;
  };

  const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value)).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, " ");

  const write = ({ logged_at: at, level, message, context }) => {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const time = made("time", at.slice(11, 19));
    time.dateTime = at;
    const line = made("p", "", `line ${level}`);
    line.append(time, " ", made("span", level, "level"), " ", made("bdi", plain(message)));
    const more = Object.entries(context ?? {}).map(([name, value]) => `${name}=${plain(value)}`);
    if (more.length) line.append(" ", made("bdi", more.join(" "), "soft"));
    log.querySelector(".none")?.remove();
    log.append(line);
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  };

  const count = (counts) => {
    for (const [name, value] of Object.entries(counts)) {
      const place = document.querySelector(`[data-count="${name}"]`);
      if (place) place.textContent = value.toLocaleString("en-US");
    }
  };

  const follow = () => {
    stream = new EventSource(`${log.dataset.events}?after=${log.dataset.last}`);
    stream.addEventListener("log", (event) => write(JSON.parse(event.data)));
    stream.addEventListener("counts", (event) => count(JSON.parse(event.data).counts));
    stream.addEventListener("end", (event) => {
      stream.close();
      say(`The run has ended: ${JSON.parse(event.data).status}`);
      look().catch(() => {});
    });
  };

  if (log) log.scrollTop = log.scrollHeight;
  if (log?.dataset.events) follow();
  window.addEventListener("pagehide", () => stream?.close());
  wait();
})();
