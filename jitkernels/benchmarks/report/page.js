"use strict";
// A table sorts by the column whose heading is pressed: by numbers where cells have some, else by text.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const ascending = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const key = (row) => {
        const cell = row.cells[column];
        const given = cell.dataset.value;
        return given === undefined || given === "" ? cell.textContent : Number(given);
      };
      const rows = [...table.tBodies[0].rows].sort((one, other) => {
        const a = key(one), b = key(other);
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1; // what is missing comes last
        const order = typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
        return ascending ? order : -order;
      });
      table.tBodies[0].append(...rows);
      const words = `${table.caption.textContent.split(";")[0]} sorted by ${heading.textContent}, `;
      document.getElementById("sorted").textContent = words + (ascending ? "ascending" : "descending");
    });
  });
}
