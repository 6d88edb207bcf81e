// Drag and drop, upload progress and live status of uploads. Without it, the form works as usual.
"use strict";

(() => {
  const CONCURRENCY = 3;
  const form = document.getElementById("send");
  const followed = document.querySelector("[data-events]");
  let stream = null;

  const element = (html) => {
    const made = document.createElement("template");
    made.innerHTML = html;
    return made.content.firstElementChild;
  };

  const announce = (words) => {
    const target = document.getElementById("announcer");
    if (words && target && target.textContent !== words) target.textContent = words;
  };

  const show = (id, html) => {
    const current = document.getElementById(id);
    const updated = element(html);
    if (current) {
      if (current.isEqualNode(updated)) return;
      const focused = current.contains(document.activeElement);
      current.replaceWith(updated);
      if (focused) updated.querySelector("a, button")?.focus();
      if (current.dataset.announce !== updated.dataset.announce) announce(updated.dataset.announce);
    } else if (id.startsWith("job-") && !followed.hasAttribute("data-older")) {
      document.getElementById("none")?.remove();
      document.getElementById("jobs")?.prepend(updated);
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

  const makeRow = (name) => {
    const made = element('<li class="card job"><p class="head"><span dir="auto"></span> <span class="badge"></span></p><progress max="100" value="0"></progress><p class="small sentence" role="alert"></p></li>');
    made.querySelector("[dir]").textContent = name;
    made.querySelector("progress").setAttribute("aria-label", `Upload progress of ${name}`);
    document.getElementById("sending").append(made);
    return made;
  };

  const setState = (row, badge, words) => {
    const mark = row.querySelector(".badge");
    mark.textContent = badge;
    if (!words) return;
    mark.classList.add("bad");
    row.querySelector("progress").remove();
    row.querySelector("[role=alert]").textContent = words;
  };

  const onResponse = (row, request) => {
    const response = request.response;
    const [file] = response?.files ?? [];
    if (!file) return setState(row, "Rejected", response?.detail ?? "Unexpected response of the server. Try again.");
    if (file.html) {
      row.remove(); // its entry in the list replaces this row
      show(file.id, file.html);
      follow();
    } else setState(row, "Rejected", file.problem);
  };

  const send = ({ file, row }) => {
    const request = new XMLHttpRequest();
    const data = new FormData();
    data.append("form_key", form.elements.form_key.value); // must precede the file
    data.append("files", file, file.name);
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => {
      const bar = row.querySelector("progress");
      if (bar && event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
    });
    request.addEventListener("load", () => onResponse(row, request));
    request.addEventListener("error", () => setState(row, "Not sent", "The connection was lost. Reload this page and send the file again."));
    request.addEventListener("loadend", () => {
      sending -= 1;
      next();
    });
    setState(row, "Sending");
    request.send(data);
  };

  const next = () => {
    while (sending < CONCURRENCY && waiting.length) {
      sending += 1;
      send(waiting.shift());
    }
  };

  const take = (files) => {
    for (const file of files) {
      const row = makeRow(file.name);
      if (file.size > Number(form.dataset.maxBytes)) {
        setState(row, "Not sent", "The file is too large.");
      } else {
        setState(row, "Waiting");
        waiting.push({ file, row });
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
  // Otherwise a file dropped outside the form would replace the page.
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
})();
