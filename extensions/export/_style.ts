// The look of an exported page: light and dark, wide and narrow, and on paper. No url(), nothing is fetched.
const colors = (name: "light" | "dark") =>
  name === "light"
    ? "--bg:#fbfbfa;--panel:#f1f1ee;--card:#fff;--text:#1d1f21;--soft:#64686d;--line:#dedfdc;--accent:#175fcc;--user:#e8f0fe;--good:#116329;--good-bg:#dafbe1;--bad:#a40e26;--bad-bg:#ffebe9;--mark:#fff3c4;--kw:#7442c8;--str:#0a5d3c;--num:#0550ae;--com:#59626b;color-scheme:light"
    : "--bg:#16181b;--panel:#1d2024;--card:#22262b;--text:#e3e5e8;--soft:#9aa2ab;--line:#343a41;--accent:#6cb0ff;--user:#1d3047;--good:#7ee2a8;--good-bg:#12341f;--bad:#ff9c9c;--bad-bg:#43191c;--mark:#4b4113;--kw:#c9a4ff;--str:#8fdcab;--num:#86c1ff;--com:#8b949e;color-scheme:dark";

const depths = Array.from({ length: 8 }, (_, index) => `.row.d${index + 1}{padding-left:${(index + 1) * 0.7}rem}`).join("");

// Rows are no list items to the browser: it would number them, and anew for each that is hidden.
export const STYLE = `
:root{${colors("light")};--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
@media (prefers-color-scheme:dark){:root:not([data-theme="light"]){${colors("dark")}}}
:root[data-theme="dark"]{${colors("dark")}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
main:focus,.entry:focus{outline:none}
.skip{position:fixed;left:.5rem;top:-5rem;z-index:4;background:var(--card);padding:.3rem .7rem;border:1px solid var(--line);border-radius:.4rem}
.skip:focus{top:.5rem}
#bar{display:none}
h1,h2,.line,.plain,.md p,.md li,.md td,.md th,.md h3,.md h4,.md h5,.md h6,pre.output,summary{unicode-bidi:plaintext}
summary b,.hint,.label,.usage,.failure{unicode-bidi:isolate}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;display:grid;grid-template-columns:minmax(15rem,22rem) minmax(0,1fr)}
button,input{font:inherit;color:inherit}
a{color:var(--accent)}
#sidebar{position:sticky;top:0;height:100vh;display:flex;flex-direction:column;background:var(--panel);border-right:1px solid var(--line)}
#sidebar .tools{padding:.75rem .75rem .5rem;border-bottom:1px solid var(--line)}
#search{width:100%;padding:.35rem .6rem;border:1px solid var(--line);border-radius:.4rem;background:var(--card)}
.filters{display:flex;flex-wrap:wrap;gap:.25rem;margin-top:.5rem}
.filters button,.actions button,#menu{border:1px solid var(--line);background:var(--card);border-radius:.4rem;padding:.1rem .5rem;font-size:.82rem;cursor:pointer}
.filters [aria-pressed="true"]{background:var(--accent);border-color:var(--accent);color:var(--bg)}
#tree{list-style:none;margin:0;padding:.4rem 0;overflow-y:auto;flex:1}
.row{display:block;content-visibility:auto;contain-intrinsic-size:auto 1.45rem}
.row a{display:flex;gap:.35rem;align-items:baseline;color:inherit;text-decoration:none;padding:.12rem .75rem;font-size:.82rem;line-height:1.45}
.row a:focus-visible{outline-offset:-2px}
.row .line{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;min-width:0}
.row a::before{flex:none;width:.55rem;height:.55rem;border-radius:50%;background:var(--line);content:"";align-self:center}
.row.user a::before{background:var(--accent)}
.row.assistant a::before{background:var(--kw)}
.row.tool a::before,.row.bash a::before{background:var(--good);border-radius:.1rem}
.row.failed a::before{background:var(--bad)}
.row.summary a::before{background:var(--num);border-radius:.1rem}
.row.fork>a{border-top:1px dashed var(--line)}
.row.user .line{font-weight:600}
.row.tool .line,.row.state .line,.row.note .line{color:var(--soft)}
.live .row:not(.on) .line{color:var(--soft);font-weight:400;font-style:italic}
.live .row:not(.on) a::before{opacity:.5}
.row a:hover{background:var(--line)}
.row.marked a{background:var(--mark)}
.live .row.marked .line{color:var(--text)}
${depths}
.count{margin:0;padding:.35rem .75rem;font-size:.78rem;color:var(--soft);border-top:1px solid var(--line)}
main{padding:1.25rem clamp(.75rem,3vw,2.5rem) 4rem;max-width:62rem;min-width:0;width:100%}
h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden}
.actions{display:none;gap:.5rem;flex-wrap:wrap;margin:.6rem 0}
.live .actions{display:flex}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.5rem 0 1rem;font-size:.88rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
#intro{border-bottom:1px solid var(--line);padding-bottom:1rem;margin-bottom:1rem}
.entry{margin:0 0 .9rem;padding:.6rem .9rem;border:1px solid var(--line);border-radius:.6rem;background:var(--card);overflow-wrap:anywhere;min-width:0}
.chunk{content-visibility:auto;contain-intrinsic-size:auto 300rem}
.entry.user{background:var(--user)}
.entry.state{border-style:dashed;padding:.25rem .9rem;font-size:.85rem}
.entry.tool,.entry.bash{border-left:3px solid var(--good)}
.entry.failed{border-left-color:var(--bad)}
.entry.summary{border-left:3px solid var(--num)}
.entry.marked{outline:2px solid var(--accent);outline-offset:-2px}
.entry>header{display:flex;flex-wrap:wrap;column-gap:.6rem;align-items:baseline;font-size:.8rem;color:var(--soft);margin-bottom:.2rem}
.entry>header h2{font-size:.8rem;margin:0;color:var(--text);overflow-wrap:anywhere;min-width:0}
.entry>header .hint{min-width:0;overflow-wrap:anywhere}
.entry>header time{margin-left:auto;white-space:nowrap}
.anchor{text-decoration:none;color:var(--soft)}
.label{background:var(--mark);border-radius:.3rem;padding:0 .35rem;font-size:.78rem;color:var(--text);flex:none;max-width:12rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.live .off{display:none}
.live:not(.all) .entry.minor{display:none}
.md>:first-child,.plain:first-child{margin-top:0}
.md>:last-child{margin-bottom:0}
.md h3{font-size:1.25rem}.md h4{font-size:1.12rem}.md h5,.md h6{font-size:1rem}
.md h3,.md h4,.md h5,.md h6{margin:1em 0 .4em;line-height:1.3}
.md p,.md ul,.md ol,.md table,.md li>ul,.md li>ol{margin:.15em 0}
.md .task{list-style:none;margin-left:-1.3em}
.md hr{border:0;border-top:1px solid var(--line);margin:1em 0}
.math{font-family:var(--mono);font-size:.9em}
div.math{white-space:pre-wrap;margin:.5em 0;padding-left:1rem}
.md blockquote{margin:.5em 0}
.md li>ul,.md li>ol{margin:.15em 0}
.md .task{list-style:none;margin-left:-1.3em}
.md hr{border:0;border-top:1px solid var(--line);margin:1em 0}
.math{font-family:var(--mono);font-size:.9em}
div.math{white-space:pre-wrap;margin:.5em 0;padding-left:1rem}
.md blockquote{border-left:3px solid var(--line);padding-left:.8rem;margin-left:0;color:var(--soft)}
.md table{border-collapse:collapse;display:block;overflow-x:auto}
.md th,.md td{border:1px solid var(--line);padding:.2rem .55rem;text-align:start;overflow-wrap:break-word;max-width:26rem}
.md .right{text-align:right}.md .center{text-align:center}
.plain{white-space:pre-wrap;margin:.4rem 0}
code,pre{font-family:var(--mono);font-size:.86em}
pre code{font-size:inherit}
:not(pre)>code{background:var(--panel);border-radius:.25rem;padding:.08em .3em}
pre{background:var(--panel);border-radius:.45rem;padding:.6rem .8rem;overflow-x:auto;margin:.5rem 0;line-height:1.45;tab-size:4}
.block{position:relative}
pre.code{white-space:pre}
pre.output,pre.diff{white-space:pre-wrap;max-height:36rem;overflow:auto}
pre.output{text-align:left}
.copy{display:none;position:absolute;z-index:1;top:.25rem;right:.25rem;border:1px solid transparent;border-radius:.35rem;background:var(--panel);color:var(--soft);padding:0 .4rem;font-size:.72rem;line-height:1.6;cursor:pointer}
.live .copy{display:block}
.live .copy:not([data-lang]){opacity:0}
.copy::before{content:attr(data-lang)}
.copy:not([data-lang])::before,.block:hover .copy::before,.copy:focus-visible::before{content:"Copy"}
.live .copy.done::before{content:"Copied"}
.live .block:hover .copy,.live .copy:focus-visible{opacity:1;color:var(--text);border-color:var(--line)}
@media (hover:none){.live .copy{opacity:1}.live .copy::before{content:"Copy"}}
.diff span{display:block;min-height:1.2em;margin:0 -.8rem;padding:0 .8rem}
.diff .added{background:var(--good-bg);color:var(--good)}
.diff .removed{background:var(--bad-bg);color:var(--bad)}
.diff .place{color:var(--soft)}
details{margin:.35rem 0}
summary{cursor:pointer;color:var(--soft);font-size:.88rem;overflow-wrap:anywhere}
summary b{color:var(--text);font-family:var(--mono);font-weight:600}
.hint{color:var(--soft);font-family:var(--mono);font-size:.9em}
.thinking>.md,.thinking>.plain{border-left:3px solid var(--line);padding-left:.8rem;color:var(--soft);font-style:italic}
.usage,p.note{margin:.4rem 0 0;font-size:.78rem;color:var(--soft)}
.failure{color:var(--bad);background:var(--bad-bg);border-radius:.4rem;padding:.3rem .6rem;margin:.4rem 0}
.picture{max-width:100%;max-height:30rem;border-radius:.4rem;border:1px solid var(--line);display:block;margin:.4rem 0}
.todos{list-style:none;padding-left:.2rem;margin:.2rem 0}
.todos .completed,.todos .abandoned{color:var(--soft)}
.todos .abandoned{text-decoration:line-through}
h4{margin:.5rem 0 .1rem;font-size:.9rem}
.box{margin-right:.15rem}
.subagents>h2{font-size:1.05rem;margin:1.2rem 0 .4rem}
.subagent{border-left:2px solid var(--line);padding-left:.8rem}
#end{color:var(--soft);font-size:.8rem;text-align:center}
.hljs-keyword,.hljs-built_in,.hljs-selector-tag,.hljs-literal,.hljs-section,.hljs-name,.hljs-type{color:var(--kw)}
.hljs-string,.hljs-regexp,.hljs-addition,.hljs-attribute,.hljs-meta .hljs-string{color:var(--str)}
.hljs-number,.hljs-attr,.hljs-title,.hljs-variable,.hljs-symbol,.hljs-link{color:var(--num)}
.hljs-comment,.hljs-quote,.hljs-meta,.hljs-deletion{color:var(--com)}
::highlight(hit){background:#ffd33d;color:#1d1f21}
.hljs-emphasis{font-style:italic}.hljs-strong{font-weight:700}
#shade{display:none}
.field{position:fixed;top:0;left:0;opacity:0}
@media (max-width:52rem){
html{scroll-padding-top:3.4rem}
body{display:block}
.live #bar{position:sticky;top:0;z-index:2;display:flex;gap:.6rem;align-items:center;padding:.4rem .75rem;background:var(--panel);border-bottom:1px solid var(--line)}
#bar span{min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:.9rem}
#menu{font-size:1rem;padding:.15rem .6rem}
.live #sidebar{position:fixed;z-index:3;left:0;top:0;bottom:0;height:auto;max-height:none;width:min(22rem,86vw);transform:translateX(-105%);visibility:hidden}
#sidebar{position:static;height:auto;max-height:60vh}
.menu #shade{display:block;position:fixed;inset:0;z-index:2;background:rgb(0 0 0/.45)}
.live.menu #sidebar{transform:none;visibility:visible}
.row a{padding-top:.3rem;padding-bottom:.3rem}
.entry{padding:.5rem .7rem}
}
@media print{
:root:root{${colors("light")}}
#sidebar,#shade,#bar,.skip,.live .actions,.live .copy,.anchor{display:none}
body{display:block;font-size:11pt}
main{max-width:none;padding:0}
.chunk{content-visibility:visible}
.entry{print-color-adjust:exact}
.entry>header{break-after:avoid}
pre,pre.code{white-space:pre-wrap;overflow-wrap:anywhere;max-height:none;overflow:visible}
.md table{display:table}
.entry.marked{outline:none}
}
`;
