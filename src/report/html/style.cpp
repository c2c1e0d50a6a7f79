#include "report/html/sections.h"

namespace tidemark::html {

// Colours of the curves as in chart_canvas.h (after Okabe and Ito), lighter where the page is dark.
const char* const kStyle = R"css(
:root {
  --paper: #ffffff; --ink: #1a1f29; --quiet: #5f6875; --rule: #e2e5ea; --soft: #f5f6f8;
  --allocated: #0072b2; --area: rgba(0, 114, 178, .24); --reserved: #d55e00; --active: #009e73; --alarm: #b3141e;
  --own: #9fcbe8; --torch: #dde3ea; --native: #f2dcc3; --nothing: #ffffff; --hit: #f0e442;
  --used: #3a8fc4; --mixed: #a5c9e0; --free: #dfe3e8; --link: #005a8e;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14171c; --ink: #e4e7ec; --quiet: #98a1ae; --rule: #2c323b; --soft: #1c2027;
    --allocated: #56b4e9; --area: rgba(86, 180, 233, .26); --reserved: #f0883e; --active: #2fc79a; --alarm: #ff7b7b;
    --own: #1f5d86; --torch: #333b46; --native: #5a4630; --nothing: #14171c; --hit: #8a7d00;
    --used: #3f8fc2; --mixed: #2a5472; --free: #363d47; --link: #7cc4f2;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 0 24px 48px; max-width: 1120px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
h1 { margin: 28px 0 0; font-size: 13px; font-weight: 600; color: var(--quiet); letter-spacing: .02em; }
h2 { margin: 2px 0 14px; font-size: 27px; line-height: 1.2; letter-spacing: -.01em; overflow-wrap: anywhere; }
h3 { margin: 0; font-size: 19px; line-height: 1.3; }
h4 { margin: 22px 0 6px; font-size: 14px; font-weight: 600; }
h4 small { margin-left: 6px; font-size: 13px; font-weight: 400; color: var(--quiet); }
p { margin: 0 0 10px; }
a { color: var(--link); }
code { font: 12.5px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
section { margin: 44px 0 0; padding-top: 18px; border-top: 1px solid var(--rule); }
article + article { margin-top: 72px; border-top: 3px solid var(--ink); padding-top: 20px; }
footer { margin-top: 56px; padding-top: 14px; border-top: 1px solid var(--rule); font-size: 13px; color: var(--quiet); }
.lead { max-width: 86ch; color: var(--quiet); text-wrap: pretty; }
.remark { margin-top: 8px; font-size: 13px; color: var(--quiet); }
.alarm { color: var(--alarm); }

.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 4px 32px; margin: 0; font-size: 13.5px; }
.facts div { display: flex; gap: 10px; }
.facts dt { flex: 0 0 86px; color: var(--quiet); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(164px, 1fr)); gap: 12px; margin: 0 0 14px; }
.figures div { padding: 10px 14px 11px; border-left: 3px solid var(--rule); background: var(--soft); color: var(--ink); }
.figures div.allocated { border-color: var(--allocated); }
.figures div.reserved { border-color: var(--reserved); }
.figures div.active { border-color: var(--active); }
.figures div.alarm { border-color: var(--alarm); }
.figures dt { font-size: 13px; color: var(--quiet); }
.figures dd { margin: 0; font-size: 22px; font-weight: 600; line-height: 1.35; letter-spacing: -.01em; }
.figures dd.detail { font-size: 12.5px; font-weight: 400; line-height: 1.45; letter-spacing: 0; color: var(--quiet); }
.glance { margin: 16px 0 4px; padding-left: 20px; }
.glance li { margin: 3px 0; }
.quality { margin: 14px 0 4px; }
.notes { margin: 0; padding: 0; list-style: none; font-size: 13.5px; }
.notes li { margin: 3px 0; }
.notes .info { color: var(--quiet); font-weight: 600; }

.legend { display: flex; flex-wrap: wrap; gap: 2px 20px; margin: 0 0 8px; font-size: 13px; color: var(--quiet); }
.legend span { display: inline-flex; align-items: center; gap: 7px; }
.legend i { flex: none; width: 16px; height: 11px; background: var(--free); }
.legend i.line { height: 3px; }
.legend .allocated { background: var(--area); border-top: 2px solid var(--allocated); }
.legend .active, .legend .pending { background: var(--active); }
.legend .reserved { background: var(--reserved); }
.legend .alarm { background: var(--alarm); }
.legend .layer { background: var(--layer); }
.legend .total { background: var(--ink); }
.legend .own { background: var(--own); }
.legend .torch { background: var(--torch); }
.legend .native { background: var(--native); }
.legend .used { background: var(--used); }
.legend .mixed { background: var(--mixed); }
.legend .free { background: var(--free); outline: 1px solid var(--rule); outline-offset: -1px; }

svg { display: block; }
svg text { font-size: 12px; fill: var(--quiet); }
.plot { display: grid; grid-template-columns: 82px minmax(0, 1fr); }
.plot .margin { width: 100%; }
.plot .margin text { text-anchor: end; }
.time > svg { overflow: visible; }
.grid { stroke: var(--rule); }
.axis { stroke: var(--quiet); }
.tick { text-anchor: middle; }
path { fill: none; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
path.area { fill: var(--area); stroke: none; }
path.allocated { stroke: var(--allocated); stroke-width: 1; }
path.area.allocated { stroke: none; }
path.active { stroke: var(--active); stroke-width: 1.4; }
path.reserved { stroke: var(--reserved); stroke-width: 1.8; }
path.total { stroke: var(--ink); stroke-width: 1.6; }
path.layer, rect.layer { fill: var(--layer); stroke: none; }
rect.rest { fill: var(--paper); stroke: var(--quiet); stroke-dasharray: 3 2; }
.layer0 { --layer: #0072b2; }
.layer1 { --layer: #99c4e0; }
.layer2 { --layer: #009e73; }
.layer3 { --layer: #e69f00; }
.layer4 { --layer: #cc79a7; }
.layer5 { --layer: #d55e00; }
.layer6 { --layer: #f0e442; }
.layer7 { --layer: #8ca873; }
.layer8 { --layer: #808a99; }
.layer9 { --layer: #ccd1d9; }
.sum { margin: 0 0 8px; }
.hint { fill: transparent; }
.hint:hover { fill: var(--ink); fill-opacity: .06; }
g.alarm line { stroke: var(--alarm); stroke-width: 1.6; }
g.alarm circle { fill: var(--alarm); }
circle.peak { fill: var(--allocated); stroke: var(--paper); stroke-width: 2; pointer-events: none; }
text.peak { font-weight: 600; fill: var(--ink); stroke: var(--paper); stroke-width: 4px; paint-order: stroke; pointer-events: none; }

table { width: 100%; border-collapse: collapse; font-size: 13.5px; }
th { padding: 4px 10px; text-align: left; font-weight: 400; color: var(--quiet); border-bottom: 1px solid var(--rule); }
td { padding: 4px 10px; vertical-align: top; border-bottom: 1px solid var(--rule); overflow-wrap: anywhere; }
th:first-child, td:first-child { padding-left: 0; }
.overview { margin: 12px 0 44px; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.bar { padding: 9px 0 0; }
.bar svg { width: 90px; }
.bar rect { fill: var(--allocated); opacity: .75; }
td i { font-style: normal; color: var(--quiet); }
td.stack { width: 100%; max-width: 0; }
.scroll { overflow-x: auto; margin-bottom: 12px; }
.part { padding-left: 16px; color: var(--quiet); }
td.stack > small { color: var(--quiet); }
h4.alarm { color: var(--alarm); }
summary { cursor: pointer; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
[open] > summary { white-space: normal; }
summary small { color: var(--quiet); font-size: 12.5px; }
summary::marker { color: var(--quiet); }
.frames { margin: 6px 0 8px; padding: 8px 12px 8px 44px; background: var(--soft); color: var(--quiet); }
.frames li { padding: 1px 0; }
.frames .own code { color: var(--ink); font-weight: 600; }
.frames small { font-size: 12px; }

.flame rect { fill: var(--nothing); stroke: var(--paper); stroke-width: .7; }
.flame > svg > svg { overflow: hidden; }
.flame text { fill: var(--ink); font-size: 11.5px; pointer-events: none; }
.flame .root rect { fill: var(--soft); }
.flame .root text { font-weight: 600; }
.flame .own rect { fill: var(--own); }
.flame .torch rect { fill: var(--torch); }
.flame .native rect { fill: var(--native); }
.flame .nothing rect { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 3 3; }
.flame svg svg:hover rect { filter: brightness(.93); }
.flame .hit rect { fill: var(--hit); }
.flame .s text { display: none; }
.flame .gone { display: none; }
.tools { display: flex; align-items: center; gap: 12px; font-size: 13px; color: var(--quiet); }
.tools input {
  width: 210px; padding: 4px 8px; font: inherit; color: var(--ink); background: var(--paper);
  border: 1px solid var(--rule); border-radius: 4px;
}

.map .wide { stroke: var(--paper); stroke-width: .6; }
.used { fill: var(--used); }
.pending { fill: var(--active); }
.mixed { fill: var(--mixed); }
.free { fill: var(--free); }
.map rect:hover { stroke: var(--ink); stroke-width: 1; }

@media (max-width: 640px) {
  body { padding: 0 14px 32px; }
  h2 { font-size: 22px; }
  .facts { grid-template-columns: 1fr; }
  .figures { grid-template-columns: repeat(auto-fill, minmax(146px, 1fr)); gap: 8px; }
  .figures dd { font-size: 19px; }
  .plot { grid-template-columns: 68px minmax(0, 1fr); }
  svg text { font-size: 11px; }
  .odd, .bar, .blocks, .flame .m text { display: none; }
  td, th { padding: 4px 6px; }
  .tools span, summary small { display: none; }
  td.stack { min-width: 150px; max-width: none; }
  summary { white-space: normal; }
}
@media print {
  :root { --paper: #ffffff; --ink: #000000; --soft: #f5f6f8; --quiet: #444b55; --rule: #cfd3d9; }
  body { max-width: none; padding: 0; font-size: 11pt; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  section { margin-top: 22px; }
  article + article { break-before: page; }
  h3, h4, .lead, .legend { break-after: avoid; }
  .figures, .plot, .flame, .lead, .glance, tr, .facts { break-inside: avoid; }
  .tools, .hint { display: none; }
  .scroll { overflow: visible; }
  summary { list-style: none; }
}
)css";

}  // namespace tidemark::html
