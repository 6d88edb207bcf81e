// Loads the children of a tree node in place. Without it, a link opens the page of the node.
"use strict";

document.addEventListener("toggle", async (event) => {
  const branch = event.target;
  if (!branch.open || !branch.dataset.branch || branch.dataset.loaded) return;
  branch.dataset.loaded = "yes";
  try {
    const response = await fetch(`${branch.dataset.branch}?fragment=true`);
    if (!response.ok) throw new Error(response.status);
    const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
    branch.querySelector(".open").replaceWith(...parsed.body.children);
  } catch {
    delete branch.dataset.loaded; // allow another attempt
    location.href = branch.dataset.branch;
  }
}, true);
