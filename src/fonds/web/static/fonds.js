// Copies citations and adds keyboard shortcuts to results. Pages also work without it.
"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  event.preventDefault();
  const source = document.getElementById(button.dataset.copy);
  const text = source ? source.textContent : "";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange(); // not permitted: select the text, so that it can be copied
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return;
  }
  button.classList.add("copied");
  announce("copied");
  setTimeout(() => button.classList.remove("copied"), 2000);
});

const announce = (words) => {
  const target = document.getElementById("announcer");
  if (target) target.textContent = words;
};

const move = (step) => {
  const hits = [...document.querySelectorAll("[data-hit]")];
  if (!hits.length) return;
  const next = hits.indexOf(document.activeElement) + step;
  hits[Math.max(0, Math.min(hits.length - 1, next))].focus();
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const box = document.querySelector("input[type=search]");
  if (event.key === "/" && box) {
    event.preventDefault();
    box.focus();
    box.select();
  } else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "c") document.activeElement.closest("li")?.querySelector("[data-copy]")?.click();
});
