"use strict";
(() => {
  const began = performance.now();
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const places = [...document.querySelectorAll("[data-figure]")];
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- light and dark --------------------------------------------------------------------------------------------
  const stored = () => { try { return localStorage.getItem("remanence-theme"); } catch { return null; } };
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (name) => { root.dataset.theme = name; };
  setTheme(stored() || (preferred.matches ? "dark" : "light"));

  const HEAT = {
    light: [[0, "rgba(0,114,178,0)"], [0.15, "#b9d9ec"], [0.5, "#3d93c4"], [1, "#003a5c"]],
    dark: [[0, "rgba(86,180,233,0)"], [0.15, "#1f4a63"], [0.5, "#3f97c9"], [1, "#d8effc"]],
  };
  const look = () => {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    return { ink: colour("--ink"), faint: colour("--faint"), rule: colour("--rule"), raised: colour("--raised"), paper: colour("--paper") };
  };
  const axisLook = (axis, c) => ({
    ...axis, gridcolor: c.rule, linecolor: c.faint, zeroline: false, tickcolor: c.rule, ticks: "outside", ticklen: 4,
    title: { ...axis?.title, font: { size: 12, color: c.faint }, standoff: 8 }, tickfont: { size: 11, color: c.faint },
  });
  const layoutOf = (figure) => {
    const c = look();
    const layout = {
      ...figure.layout, autosize: true, margin: { l: 62, r: 12, t: figure.data.some((trace) => trace.showlegend) ? 36 : 10, b: 48 }, hovermode: "closest", dragmode: "zoom",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, color: c.ink },
      hoverlabel: { bgcolor: c.raised, bordercolor: c.rule, font: { color: c.ink, size: 12 }, namelength: 60 },
      showlegend: figure.data.some((trace) => trace.showlegend), legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: c.faint, activecolor: c.ink },
      xaxis: axisLook(figure.layout.xaxis, c), yaxis: axisLook(figure.layout.yaxis, c),
    };
    if (layout.coloraxis) {
      const bar = { thickness: 8, outlinewidth: 0, tickfont: { size: 10, color: c.faint } };
      layout.coloraxis = { ...layout.coloraxis, colorscale: HEAT[root.dataset.theme], colorbar: bar };
    }
    return layout;
  };

  // ---- pictures --------------------------------------------------------------------------------------------------
  const CONFIG = {
    responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
  };
  const draw = (place) => {
    const figure = figures[Number(place.dataset.figure)];
    return Plotly.newPlot(place, figure.data, layoutOf(figure), CONFIG);
  };
  const recolour = () => places.forEach((place) => {
    if (place.layout) Plotly.update(place, {}, layoutOf(figures[Number(place.dataset.figure)]));
  });
  const drawAll = async () => {
    for (const place of places) {
      try { await draw(place); } catch (error) { place.textContent = "This picture could not be drawn."; console.error(error); }
    }
    root.dataset.drawn = String(Math.round(performance.now() - began));
  };

  document.getElementById("theme").addEventListener("click", () => {
    setTheme(root.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("remanence-theme", root.dataset.theme); } catch { /* a page from disk may not store */ }
    recolour();
  });
  preferred.addEventListener("change", () => {
    setTheme(preferred.matches ? "dark" : "light");
    recolour();
  });
  let beforePrint = null;
  // A picture drawn for a wide window would be cut off by the edge of the paper.
  const fit = (width) => document.querySelectorAll(".js-plotly-plot").forEach((plot) => Plotly.relayout(plot, { width: width && Math.min(width, plot.clientWidth), autosize: !width }));
  addEventListener("beforeprint", () => { beforePrint = root.dataset.theme; setTheme("light"); recolour(); fit(640); });
  addEventListener("afterprint", () => { setTheme(beforePrint); recolour(); fit(null); });

  // ---- switches of models ----------------------------------------------------------------------------------------
  all(".legend button").forEach((button) => button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    all("[data-figure]", button.closest("section")).forEach((place) => {
      const mine = (place.data || []).flatMap((trace, i) => (trace.meta?.model === button.dataset.model ? [i] : []));
      if (mine.length) Plotly.restyle(place, { visible: shown }, mine);
    });
  }));

  // ---- tables ----------------------------------------------------------------------------------------------------
  const key = (row, column, numeric) => {
    const value = row.cells[column].dataset.value;
    if (!numeric) return value ?? "";
    return value === undefined || value === "NaN" ? null : Number(value);
  };
  const sort = (heading) => {
    const table = heading.closest("table"), column = heading.cellIndex, numeric = heading.classList.contains("number");
    const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    all("thead th", table).forEach((other) => other.setAttribute("aria-sort", other === heading ? direction : "none"));
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column, numeric), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what has no number comes last
      return sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  all("thead button").forEach((button) => button.addEventListener("click", () => sort(button.closest("th"))));

  all(".filtered").forEach((block) => {
    const rows = [...block.querySelector("tbody").rows];
    const apply = () => {
      const words = block.querySelector("[data-search]").value.toLowerCase();
      const chosen = all("[data-filter]", block).map((select) => [select.dataset.filter, select.value]);
      for (const row of rows) {
        const fits = chosen.every(([name, value]) => !value || row.dataset[name] === value);
        row.hidden = !(fits && row.textContent.toLowerCase().includes(words));
      }
      block.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    };
    block.addEventListener("input", apply);
    block.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  });

  drawAll();
})();
