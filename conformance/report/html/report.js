
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");
  var buttons = [].slice.call(document.querySelectorAll("[data-filter]"));
  var rows = [].slice.call(document.querySelectorAll("[data-status]"));
  var areas = [].slice.call(document.querySelectorAll("details.area"));
  var search = document.getElementById("search");
  var shown = document.getElementById("shown");
  var current = "";
  function apply() {
    var q = search.value.trim().toLowerCase();
    var n = 0;
    rows.forEach(function (row) {
      var hit = (!current || row.dataset.status === current) &&
        (!q || row.textContent.toLowerCase().indexOf(q) >= 0);
      row.hidden = !hit;
      if (hit) { n++; }
    });
    areas.forEach(function (a) {
      var left = a.querySelectorAll("[data-status]:not([hidden])").length;
      a.hidden = left === 0;
      if (current || q) { a.open = left > 0; }
    });
    buttons.forEach(function (b) {
      b.setAttribute("aria-pressed", String(b.dataset.filter === current));
    });
    shown.textContent = n + " of " + rows.length + " checks shown";
  }
  buttons.forEach(function (b) {
    b.addEventListener("click", function () {
      current = b.dataset.filter === current ? "" : b.dataset.filter;
      apply();
      if (current) { document.getElementById("checks").scrollIntoView(); }
    });
  });
  search.addEventListener("input", apply);
  [].slice.call(document.querySelectorAll("button.copy")).forEach(function (b) {
    b.addEventListener("click", function () {
      var code = b.parentNode.querySelector("code");
      var done = function () {
        b.textContent = "copied";
        setTimeout(function () { b.textContent = "copy"; }, 1500);
      };
      if (navigator.clipboard) {
        navigator.clipboard.writeText(code.textContent).then(done, function () {});
        return;
      }
      var range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    });
  });
  function reveal() {
    var id = decodeURIComponent(location.hash.slice(1));
    var el = id && document.getElementById(id);
    for (var p = el; p; p = p.parentElement) {
      if (p.tagName === "DETAILS") { p.open = true; }
    }
    if (el) { el.scrollIntoView(); }
  }
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", function () {
    [].slice.call(document.querySelectorAll("details.area, details.fold")).forEach(function (d) { d.open = true; });
  });
  apply();
  reveal();
})();
