"use strict";
// Tables that sort by a click on a header: up first, down at the second click, up again.
(function (exported) {
  // A cell counts as its number, else as its text; one without either stays at the end.
  function keyOf(cell) {
    const raw = cell.dataset.value;
    if (raw !== undefined) {
      return Number(raw);
    }
    const text = cell.textContent.trim();
    return text === "" ? null : text;
  }

  function compared(a, b) {
    if (typeof a === "number" && typeof b === "number") {
      return a - b;
    }
    if (typeof a !== typeof b) {
      return typeof a === "number" ? -1 : 1;
    }
    return a.localeCompare(b, "en", { numeric: true });
  }

  // The places of keys in their order; equal ones keep theirs, null is last both ways.
  function ordered(keys, descending) {
    const places = keys.map((_, place) => place);
    return places.sort((p, q) => {
      const a = keys[p], b = keys[q];
      if (a === null || b === null) {
        return (a === null) - (b === null) || p - q;
      }
      return (descending ? compared(b, a) : compared(a, b)) || p - q;
    });
  }

  function sortBy(table, column) {
    const headers = Array.from(table.tHead.rows[0].cells);
    const descending = headers[column].getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const keys = rows.map((row) => keyOf(row.cells[column]));
    for (const place of ordered(keys, descending)) {
      body.appendChild(rows[place]);
    }
    headers.forEach((header, place) => {
      const order = descending ? "descending" : "ascending";
      header.setAttribute("aria-sort", place === column ? order : "none");
    });
  }

  // A header's text moves into a button, so that keys reach it; without a script it is text.
  function start(root) {
    for (const table of root.querySelectorAll("table.sortable")) {
      Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
        const button = root.createElement("button");
        button.type = "button";
        button.textContent = header.textContent;
        button.addEventListener("click", () => sortBy(table, column));
        header.replaceChildren(button);
      });
    }
  }

  if (exported) {
    exported.exports = { keyOf, ordered, sortBy, start };
  } else {
    start(document);
  }
})(typeof module === "undefined" ? null : module);
