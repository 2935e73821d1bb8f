(function () {
  'use strict';
  var doc = document, $$ = function (s, r) { return Array.prototype.slice.call((r || doc).querySelectorAll(s)); };
  doc.documentElement.classList.add('on');
  var live = doc.getElementById('live');

  // Copy buttons: only the text of rooda's own command.
  doc.addEventListener('click', function (e) {
    var b = e.target.closest('.cp'); if (!b) return;
    var done = function (ok) {
      var s = b.querySelector('span'); s.textContent = ok ? 'Copied' : 'Select'; live.textContent = ok ? 'Command copied' : '';
      setTimeout(function () { s.textContent = 'Copy'; }, 1600);
      if (!ok) { var r = doc.createRange(); r.selectNodeContents(b.parentNode.querySelector('code')); var g = getSelection(); g.removeAllRanges(); g.addRange(r); }
    };
    if (navigator.clipboard) navigator.clipboard.writeText(b.parentNode.querySelector('code').textContent).then(function () { done(true); }, function () { done(false); }); else done(false);
  });

  // A link to an iteration opens it.
  function openTarget() {
    var m = /^#i(\d+)$/.exec(location.hash), li = m && doc.getElementById('i' + m[1]);
    if (!li) return;
    list.removeAttribute('data-f'); press('all');
    li.querySelector('details').open = true; li.scrollIntoView(); li.querySelector('summary').focus({ preventScroll: true });
  }
  var list = doc.querySelector('.its');
  function press(f) { $$('.flt [data-f]').forEach(function (b) { b.setAttribute('aria-pressed', String(b.dataset.f === f)); }); }
  $$('.flt [data-f]').forEach(function (b) { b.addEventListener('click', function () { list.dataset.f = b.dataset.f; press(b.dataset.f); }); });
  var x = doc.querySelector('[data-x]');
  if (x) x.addEventListener('click', function () {
    var open = x.dataset.x === 'open';
    $$('.its>li>details').forEach(function (d) { d.open = open; });
    x.dataset.x = open ? 'close' : 'open'; x.textContent = open ? 'Close all' : 'Open all';
  });
  addEventListener('hashchange', openTarget);

  // One iteration is marked in the strip, the three plots and the list together.
  var by = {}, outs = $$('figure').map(function (f) { var o = f.querySelector('output'); return { f: f, o: o, t: o.textContent }; }), cur = null;
  $$('[data-n]').forEach(function (e) { (by[e.dataset.n] = by[e.dataset.n] || []).push(e); });
  function mark(n) {
    if (n === cur) return;
    if (cur) by[cur].forEach(function (e) { e.classList.remove('hot'); });
    cur = n;
    if (n) by[n].forEach(function (e) { e.classList.add('hot'); });
    outs.forEach(function (q) { var c = n && q.f.querySelector('.col[data-n="' + n + '"]'); q.o.textContent = c ? c.dataset.r : q.t; });
  }
  function over(e) { var t = e.target.closest && e.target.closest('.tl a,.col'); mark(t ? t.dataset.n : null); }
  doc.addEventListener('pointerover', over); doc.addEventListener('pointerdown', over);

  // On paper: failed iterations are open.
  addEventListener('beforeprint', function () { $$('.its>li.bad>details').forEach(function (d) { d.open = true; }); });
  openTarget();
})();
