// Opens a branch of a tree where it stands; without this file a link in it leads to its own page.
"use strict";

document.addEventListener("toggle", async (event) => {
  const branch = event.target;
  if (!branch.open || !branch.dataset.branch || branch.dataset.loaded) return;
  branch.dataset.loaded = "yes";
  try {
    const answer = await fetch(`${branch.dataset.branch}?fragment=true`);
    if (!answer.ok) throw new Error(answer.status);
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    branch.querySelector(".open").replaceWith(...parsed.body.children);
  } catch {
    delete branch.dataset.loaded; // a second try may fare better
    location.href = branch.dataset.branch;
  }
}, true);
