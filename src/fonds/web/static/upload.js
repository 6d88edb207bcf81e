// Without this file the form sends its files, and pages are loaded again to see how they fare;
// with it, files are dropped, each shows how much of it was sent, and pages change by themselves.
"use strict";

(() => {
  const AT_ONCE = 3;
  const form = document.getElementById("send");
  const followed = document.querySelector("[data-events]");
  let stream = null;

  const element = (html) => {
    const made = document.createElement("template");
    made.innerHTML = html;
    return made.content.firstElementChild;
  };

  const say = (words) => {
    const place = document.getElementById("said");
    if (words && place && place.textContent !== words) place.textContent = words;
  };

  const show = (id, html) => {
    const held = document.getElementById(id);
    const fresh = element(html);
    if (held) {
      if (held.isEqualNode(fresh)) return;
      const focused = held.contains(document.activeElement);
      held.replaceWith(fresh);
      if (focused) fresh.querySelector("a, button")?.focus();
      if (held.dataset.says !== fresh.dataset.says) say(fresh.dataset.says);
    } else if (id.startsWith("job-") && !followed.hasAttribute("data-older")) {
      document.getElementById("none")?.remove();
      document.getElementById("jobs")?.prepend(fresh);
    }
  };

  const follow = () => {
    if (stream || !followed) return;
    stream = new EventSource(followed.dataset.events);
    stream.addEventListener("show", (event) => {
      const { id, html } = JSON.parse(event.data);
      show(id, html);
    });
    stream.addEventListener("end", () => {
      stream.close();
      stream = null;
    });
  };

  if (document.querySelector(".going")) follow();
  window.addEventListener("pagehide", () => stream?.close());
  if (!form) return;

  const waiting = [];
  let sending = 0;
  form.classList.add("scripted");

  const row = (name) => {
    const made = element('<li class="card job"><p class="head"><span dir="auto"></span> <span class="badge"></span></p><progress max="100" value="0"></progress><p class="small sentence" role="alert"></p></li>');
    made.querySelector("[dir]").textContent = name;
    made.querySelector("progress").setAttribute("aria-label", `How much of ${name} was sent`);
    document.getElementById("sending").append(made);
    return made;
  };

  const tell = (shown, badge, words) => {
    const mark = shown.querySelector(".badge");
    mark.textContent = badge;
    if (!words) return;
    mark.classList.add("bad");
    shown.querySelector("progress").remove();
    shown.querySelector("[role=alert]").textContent = words;
  };

  const came = (shown, request) => {
    const answer = request.response;
    const [file] = answer?.files ?? [];
    if (!file) return tell(shown, "Not taken in", answer?.detail ?? "The server did not answer as it should. Try again.");
    if (file.html) {
      shown.remove(); // its own entry in the list says the rest
      show(file.id, file.html);
      follow();
    } else tell(shown, "Not taken in", file.problem);
  };

  const send = ({ file, shown }) => {
    const request = new XMLHttpRequest();
    const data = new FormData();
    data.append("form_key", form.elements.form_key.value); // before the file: it is checked first
    data.append("files", file, file.name);
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => {
      const bar = shown.querySelector("progress");
      if (bar && event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
    });
    request.addEventListener("load", () => came(shown, request));
    request.addEventListener("error", () => tell(shown, "Not sent", "The connection broke. Load this page again, and send the file once more."));
    request.addEventListener("loadend", () => {
      sending -= 1;
      next();
    });
    tell(shown, "Sending");
    request.send(data);
  };

  const next = () => {
    while (sending < AT_ONCE && waiting.length) {
      sending += 1;
      send(waiting.shift());
    }
  };

  const take = (files) => {
    for (const file of files) {
      const shown = row(file.name);
      if (file.size > Number(form.dataset.most)) {
        tell(shown, "Not sent", "The file is too large.");
      } else {
        tell(shown, "Waiting");
        waiting.push({ file, shown });
      }
    }
    next();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.files.addEventListener("change", (event) => {
    take([...event.target.files]);
    event.target.value = "";
  });
  for (const kind of ["dragenter", "dragover"]) {
    form.addEventListener(kind, (event) => {
      event.preventDefault();
      form.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) {
    form.addEventListener(kind, (event) => {
      event.preventDefault();
      form.classList.remove("over");
    });
  }
  form.addEventListener("drop", (event) => take([...event.dataTransfer.files]));
  // A file that misses the form would be opened in place of the page.
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
})();
