/* Lists the versions of the site, of the file versions.json beside their folders, at the top of the sidebar. */
document.addEventListener("DOMContentLoaded", async () => {
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const brand = document.querySelector(".sidebar-brand");
  const answer = await fetch(new URL("../versions.json", root)).catch(() => null);
  if (!brand || !answer || !answer.ok) return;
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "Version");
  const here = root.pathname.split("/").filter(Boolean).pop();
  for (const version of await answer.json()) {
    choice.add(new Option(version, version, false, version === here));
  }
  choice.addEventListener("change", () => {
    location.href = new URL(`../${choice.value}/index.html`, root).href;
  });
  brand.after(choice);
});
